import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Logger } from 'pino';
import { throttledErrorLog } from '../../observe/log.ts';
import { addressOf, networkOf } from '../request/caller-address.ts';

interface Exchange {
  readonly incoming: IncomingMessage;
  readonly outgoing: ServerResponse;
}

interface Connection {
  readonly network: string;
  /** Requests whose answers have not ended, in order: the app works on the first, the others wait. */
  readonly unanswered: Exchange[];
  /** The last request that arrived. */
  last?: Exchange;
  /** Called when every request of the connection is answered. */
  onAnswered?: () => void;
}

type Listener = (incoming: IncomingMessage, outgoing: ServerResponse) => void;

export interface ConnectionLimits {
  /** How many may be open at a time. */
  readonly maxConnections: number;
  /** How long a caller may leave an answer unread. */
  readonly sendTimeoutSeconds: number;
}

/**
 * How many requests of a connection may be unanswered. Clients that send without waiting send pairs; with headers of 16 kB
 * each, four are 64 kB for a connection, and 64 MB for a thousand.
 */
const maxUnanswered = 4;

/** How long a stop waits for a request that may be on its way, and for the rest of one that has begun to arrive. */
const unreadMs = 200;
const restMs = 2_000;

/** How long a caller may keep sending the rest of a request that was already answered, and how long it may pause. */
const lingerMs = 30_000;
const pauseMs = 5_000;

/**
 * The connections of a server, and what bounds the memory and time that callers can take:
 * - The service works on one request of a connection at a time. The others wait, four at most with the first one; a
 *   connection that sends more is closed.
 * - An answer is broken off when its caller reads nothing for `sendTimeoutSeconds`.
 * - When there are too many connections, the service closes one of the network that has the most, an idle one if
 *   possible. So a caller who opens many shuts out itself, and callers behind one proxy share the whole number.
 */
export class Connections {
  readonly #server: Server;
  readonly #limits: ConnectionLimits;
  readonly #open = new Map<Socket, Connection>();
  readonly #listener: Listener;
  readonly #warnOfFull: ReturnType<typeof throttledErrorLog>;
  readonly #warnOfFlood: ReturnType<typeof throttledErrorLog>;
  #stopping = false;

  /** @param listener given one request of a connection at a time */
  constructor(server: Server, limits: ConnectionLimits, log: Logger, listener: Listener) {
    this.#server = server;
    this.#limits = limits;
    this.#listener = listener;
    this.#warnOfFull = throttledErrorLog(
      log,
      'more connections than MAX_CONNECTIONS: one of the network with the most is closed for each new one',
      'warn',
    );
    this.#warnOfFlood = throttledErrorLog(
      log,
      'a caller sent too many requests without waiting for the answers: its connection is closed',
      'warn',
    );
    server.on('connection', (socket) => {
      this.#open.set(socket, { network: networkOf(addressOf(socket)), unanswered: [] });
      socket.once('close', () => this.#open.delete(socket));
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
    server.on('request', (incoming, outgoing) => this.#arrive({ incoming, outgoing }));
    server.on('checkContinue', (incoming: IncomingMessage, outgoing: ServerResponse) => {
      // `100 Continue` is sent where the body is read; a caller that is refused before need not send it.
      server.emit('request', incoming, outgoing);
    });
  }

  #arrive(exchange: Exchange): void {
    const { incoming, outgoing } = exchange;
    const { socket } = incoming;
    const connection = this.#open.get(socket);
    // The rest of what Node.js had read when the connection was closed.
    if (!connection || socket.destroyed) return;
    const { network, unanswered } = connection;
    if (unanswered.length === maxUnanswered) {
      this.#warnOfFlood({ network });
      parseNoMore(socket);
      return void socket.destroy();
    }
    if (this.#stopping) outgoing.shouldKeepAlive = false;
    connection.last = exchange;
    if (unanswered.push(exchange) === 1) this.#begin(connection, exchange);
  }

  #begin(connection: Connection, { incoming, outgoing }: Exchange): void {
    const { socket } = incoming;
    const { unanswered } = connection;
    outgoing.setTimeout(this.#limits.sendTimeoutSeconds * 1000, () => {
      // Otherwise the service itself takes its time, or the body arrives slowly.
      if (socket.writableLength > 0) socket.resetAndDestroy();
    });
    // At the next turn of the event loop, after the requests of other callers: a caller that does not wait for its
    // answers gets them no sooner.
    const endTurn = () => {
      unanswered.shift();
      // The caller has left, or was told that this is the last answer.
      if (!socket.writable) unanswered.length = 0;
      const [next] = unanswered;
      if (next) this.#begin(connection, next);
      else connection.onAnswered?.();
    };
    outgoing.once('close', () => setImmediate(endTurn));
    this.#listener(incoming, outgoing);
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

  /** Calls back, once, when the requests that have arrived whole are answered. Nothing more is read until then. */
  afterAnswers(socket: Socket, callback: () => void): void {
    const connection = this.#open.get(socket);
    if (!connection || connection.onAnswered) return;
    const { unanswered, last } = connection;
    connection.onAnswered = () => {
      connection.onAnswered = () => undefined;
      callback();
    };
    if (last === unanswered.at(-1) && !last?.incoming.complete) unanswered.pop();
    if (unanswered.length === 0) connection.onAnswered();
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
    this.#warnOfFull({ open: this.#open.size, network, ofIt: most.length });
  }

  #isIdle(socket: Socket): boolean {
    return this.#open.get(socket)?.unanswered.length === 0;
  }

  /** Accepts no new connection, lets running answers finish for up to `limitSeconds`, and resolves when all are closed. */
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
 * Without this, Node.js makes requests of all the bytes that it has read, 3,600 requests of 64 KiB in 43 ms, before it
 * closes a connection. Node.js itself returns 2 for an upgrade, which means that the following bytes are no request. There
 * is no public way to do so; floods.test.ts fails when this one stops working.
 */
function parseNoMore(socket: Socket & { parser?: { onIncoming: () => number } }): void {
  if (socket.parser) socket.parser.onIncoming = () => 2;
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
