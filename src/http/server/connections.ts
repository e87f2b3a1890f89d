import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { addressOf, networkOf } from '../access/caller-address.ts';

interface Exchange {
  readonly incoming: IncomingMessage;
  readonly outgoing: ServerResponse;
}

interface Connection {
  readonly network: string;
  /** The last request that was read. */
  last?: Exchange;
  /** How much of its body is still to come, as its Content-Length tells. */
  bodyBytesLeft: number;
  /** Whatever else arrives is not read any more. */
  deaf: boolean;
}

export interface ConnectionLimits {
  /** How many may be open at a time. */
  readonly maxConnections: number;
  /** How long a caller may leave an answer unread. */
  readonly sendTimeoutSeconds: number;
  /** Called for each connection that is closed because there are too many. */
  readonly onFull: (connections: {
    readonly open: number;
    readonly network: string;
    readonly ofIt: number;
  }) => void;
}

/** How long a stop waits for a request that may be on its way, and for the rest of one that has begun to arrive. */
const unreadMs = 200;
const restMs = 2_000;

/** How long a caller may keep sending the rest of a request that was already answered, and how long it may pause. */
const lingerMs = 30_000;
const pauseMs = 5_000;

/**
 * The connections of a server, and what bounds the memory and time that callers can take:
 * - Of a connection one request at a time is read and worked on. What comes behind it stays unread, 128 KiB in the
 *   service at most and the rest in the network, until its answer has left.
 * - An answer whose caller takes nothing of it for `sendTimeoutSeconds` is broken off.
 * - When there are too many connections, one of those is closed whose network has the most, an idle one if possible. So
 *   a caller who opens many shuts out itself, and callers behind one proxy have as many as there may be.
 */
export class Connections {
  readonly #server: Server;
  readonly #limits: ConnectionLimits;
  readonly #open = new Map<Socket, Connection>();
  /** Paused connections whose answer has left, in this order. */
  readonly #held: Socket[] = [];
  #stopping = false;

  constructor(server: Server, limits: ConnectionLimits) {
    this.#server = server;
    this.#limits = limits;
    server.on('connection', (socket) => {
      const connection = { network: networkOf(addressOf(socket)), bodyBytesLeft: 0, deaf: false };
      this.#open.set(socket, connection);
      socket.once('close', () => this.#open.delete(socket));
      readInTurn(socket, connection, () => this.#readLater(socket));
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
      if (this.#open.size > limits.maxConnections) this.#closeOne();
    });
    server.on('request', (incoming, outgoing) => this.#begin(incoming, outgoing));
    server.on('checkContinue', (incoming: IncomingMessage, outgoing: ServerResponse) => {
      // `100 Continue` is sent where the body is read; a caller that is refused before need not send it.
      server.emit('request', incoming, outgoing);
    });
  }

  #begin(incoming: IncomingMessage, outgoing: ServerResponse): void {
    const { socket } = incoming;
    const connection = this.#open.get(socket);
    if (!connection) return;
    if (this.#stopping) outgoing.shouldKeepAlive = false;
    connection.last = { incoming, outgoing };
    connection.bodyBytesLeft = Number(incoming.headers['content-length'] ?? 0);
    outgoing.setTimeout(this.#limits.sendTimeoutSeconds * 1000, () => {
      // Otherwise it is the service that takes its time, or the body that is slow to come.
      if (socket.writableLength > 0) socket.resetAndDestroy();
    });
    outgoing.once('close', () => {
      if (socket.isPaused()) this.#readLater(socket);
    });
  }

  /** What was sent without waiting is read last: one of it at each turn of the event loop, after all that is new. */
  #readLater(socket: Socket): void {
    if (this.#held.push(socket) === 1) setImmediate(() => this.#readHeld());
  }

  #readHeld(): void {
    this.#held.shift()?.resume();
    if (this.#held.length > 0) setImmediate(() => this.#readHeld());
  }

  /** Whether an answer has begun to a request that is still arriving, and not ended. */
  isAnswering(socket: Socket): boolean {
    const last = this.#open.get(socket)?.last;
    return (
      last !== undefined && !last.outgoing.closed && !last.incoming.complete && last.outgoing.headersSent
    );
  }

  /** Whether the caller is still sending a request that was fully answered. */
  isAnswered(socket: Socket): boolean {
    const last = this.#open.get(socket)?.last;
    return last !== undefined && !last.incoming.complete && last.outgoing.writableEnded;
  }

  /** Discards what the connection has sent and will send. Returns whether that was so before. */
  turnDeaf(socket: Socket): boolean {
    const connection = this.#open.get(socket);
    const before = connection?.deaf ?? true;
    if (connection) connection.deaf = true;
    socket.resume();
    return before;
  }

  #closeOne(): void {
    const socketsOf = new Map<string, Socket[]>();
    for (const [socket, { network }] of this.#open) {
      const sockets = socketsOf.get(network);
      if (sockets) sockets.push(socket);
      else socketsOf.set(network, [socket]);
    }
    const [[network, most] = ['', []]] = [...socketsOf].sort(([, a], [, b]) => b.length - a.length);
    // The oldest first.
    (most.find((socket) => this.#isIdle(socket)) ?? most[0])?.destroy();
    this.#limits.onFull({ open: this.#open.size, network, ofIt: most.length });
  }

  #isIdle(socket: Socket): boolean {
    return this.#open.get(socket)?.last?.outgoing.closed ?? true;
  }

  /** Accepts nothing new, lets running answers finish for up to `limitSeconds`, and resolves when all is closed. */
  async stop(limitSeconds: number): Promise<void> {
    this.#stopping = true;
    const closed = new Promise((resolve) => this.#server.close(resolve));
    const startedAt = performance.now();
    const close = () => {
      this.#server.closeIdleConnections();
      const waitedMs = performance.now() - startedAt;
      for (const socket of this.#open.keys()) {
        // What a caller sent just before the stop may not have been read yet.
        const silent = socket.bytesRead === 0 && waitedMs > unreadMs;
        if (this.#isIdle(socket) && (silent || waitedMs > restMs)) socket.destroy();
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
 * Hands Node.js one message at a time: the next after the answer has left. By itself it makes requests of all that it
 * has read, 3,600 of 64 KiB, before any is answered.
 */
function readInTurn(socket: Socket, connection: Connection, readLater: () => void): void {
  const parse = socket.listeners('data');
  socket.removeAllListeners('data').on('data', (bytes: Buffer) => {
    let rest = bytes;
    while (rest.length > 0 && !connection.deaf && !socket.destroyed) {
      const { last, bodyBytesLeft } = connection;
      const isNext = last?.incoming.complete;
      const hasLeft = last?.outgoing.closed;
      // One was refused before it had arrived whole.
      if (isNext && hasLeft && rest !== bytes) readLater();
      if ((isNext && (!hasLeft || rest !== bytes)) || socket.isPaused()) {
        socket.pause().unshift(rest);
        return;
      }
      const length = bodyBytesLeft > 0 ? Math.min(bodyBytesLeft, rest.length) : partBytes(rest);
      connection.bodyBytesLeft = Math.max(0, bodyBytesLeft - length);
      for (const listener of parse) listener.call(socket, rest.subarray(0, length));
      rest = rest.subarray(length);
    }
  });
}

const [carriageReturn, lineFeed] = Buffer.from('\r\n');

/**
 * How much to read of what may hold the end of a message: up to an empty line, with which headers and the last chunk
 * end, wherever the network has cut it.
 */
function partBytes(bytes: Buffer): number {
  if (bytes[0] === lineFeed) return 1;
  if (bytes[0] === carriageReturn && bytes[1] === lineFeed) return 2;
  const at = bytes.indexOf('\n\r\n');
  return at < 0 ? bytes.length : at + 3;
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
