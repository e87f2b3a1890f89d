import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

interface Exchange {
  readonly incoming: IncomingMessage;
  readonly outgoing: ServerResponse;
}

interface Connection {
  /** The exchanges that are not fully answered yet. */
  readonly running: Set<Exchange>;
  last?: Exchange;
  /** Called whenever an answer has ended. */
  onAnswered?: () => void;
}

/** How long a stop waits for a request that may be on its way, and for the rest of one that has begun to arrive. */
const unreadMs = 200;
const restMs = 2_000;

/** How long a caller may keep sending the rest of a request that was already answered, and how long it may pause. */
const lingerMs = 30_000;
const pauseMs = 5_000;

/** Tracks what is under way on every connection of a server. */
export class Connections {
  readonly #server: Server;
  readonly #open = new Map<Socket, Connection>();
  #stopping = false;

  constructor(server: Server) {
    this.#server = server;
    server.on('connection', (socket) => {
      this.#open.set(socket, { running: new Set() });
      socket.once('close', () => this.#forget(socket));
      const closeNow = socket.destroySoon;
      // Called by Node.js after the last answer of a connection.
      socket.destroySoon = () => {
        if (!this.isAnswered(socket)) return closeNow.call(socket);
        socket.end();
        this.#open
          .get(socket)
          ?.last?.incoming.once('end', () => socket.destroy())
          .resume();
        linger(socket, lingerMs);
      };
    });
    const begin = (incoming: IncomingMessage, outgoing: ServerResponse) => {
      if (this.#stopping) outgoing.shouldKeepAlive = false;
      const connection = this.#open.get(incoming.socket);
      if (!connection) return;
      const exchange = { incoming, outgoing };
      connection.last = exchange;
      connection.running.add(exchange);
      outgoing.once('close', () => {
        connection.running.delete(exchange);
        connection.onAnswered?.();
      });
    };
    server.on('request', begin);
    server.on('checkContinue', (incoming: IncomingMessage, outgoing: ServerResponse) => {
      // `100 Continue` is sent where the body is read; a caller that is refused before need not send it.
      server.emit('request', incoming, outgoing);
    });
  }

  /** Whether an answer has begun to a request that is still arriving, and not ended. */
  isAnswering(socket: Socket): boolean {
    return this.#running(socket).some(({ incoming, outgoing }) => !incoming.complete && outgoing.headersSent);
  }

  /** Resolves when the requests that have arrived are answered, or their caller has left. */
  async answered(socket: Socket): Promise<void> {
    const arrived = this.#running(socket).filter(({ incoming }) => incoming.complete);
    for (;;) {
      const connection = this.#open.get(socket);
      if (!connection || !arrived.some((exchange) => connection.running.has(exchange))) return;
      await new Promise<void>((resolve) => {
        connection.onAnswered = resolve;
      });
    }
  }

  /** Whether the caller is still sending a request that was fully answered. */
  isAnswered(socket: Socket): boolean {
    const last = this.#open.get(socket)?.last;
    return last !== undefined && !last.incoming.complete && last.outgoing.writableEnded;
  }

  /** Ends also the answers that were waiting behind others: Node.js forgets them, and whoever writes one never knows. */
  #forget(socket: Socket): void {
    const running = this.#running(socket);
    this.#open.delete(socket);
    for (const { outgoing } of running) if (!outgoing.socket) outgoing.destroy().emit('close');
  }

  #running(socket: Socket): readonly Exchange[] {
    return [...(this.#open.get(socket)?.running ?? [])];
  }

  /** Accepts nothing new, lets running answers finish for up to `limitSeconds`, and resolves when all is closed. */
  async stop(limitSeconds: number): Promise<void> {
    this.#stopping = true;
    const closed = new Promise((resolve) => this.#server.close(resolve));
    const startedAt = performance.now();
    const close = () => {
      this.#server.closeIdleConnections();
      const waitedMs = performance.now() - startedAt;
      for (const [socket, { running }] of this.#open) {
        // What a caller sent just before the stop may not have been read yet.
        const silent = socket.bytesRead === 0 && waitedMs > unreadMs;
        if (running.size === 0 && (silent || waitedMs > restMs)) socket.destroy();
      }
    };
    // A kept-alive connection becomes idle only after its answer has ended.
    const idle = setInterval(close, 100);
    const limit = setTimeout(() => this.#server.closeAllConnections(), limitSeconds * 1000);
    await closed;
    clearInterval(idle);
    clearTimeout(limit);
  }
}

/**
 * Keeps reading what the caller is sending until it ends, pauses or runs out of time: closing a connection with unread
 * bytes resets it, and the caller may lose the answer.
 */
export function linger(socket: Socket, maxMs: number): void {
  // Nothing would end the timers.
  if (socket.destroyed) return;
  const cut = setTimeout(() => socket.destroy(), maxMs);
  let seen = -1;
  const pauses = setInterval(() => {
    if (socket.bytesRead === seen) socket.destroy();
    seen = socket.bytesRead;
  }, pauseMs);
  socket.once('end', () => socket.destroy());
  socket.once('close', () => {
    clearTimeout(cut);
    clearInterval(pauses);
  });
}
