import { once } from 'node:events';
import { connect, createServer, type Socket } from 'node:net';

/**
 * A loopback port whose connections go on to the native port of an engine, by which its peers reach it. The engine reaches
 * its own shard by it, too, because it does not take that port for its own.
 *
 * The engine ends when a peer resets a connection: a server only logs the exception that leaves the thread which reads from
 * it, clickhouse-local terminates. A peer that is killed resets its connections, and so does one that gives up in the middle
 * of an answer. An engine behind a relay sees that the connection has ended, as if the peer had closed it.
 */
export class Relay {
  readonly #connections = new Set<Socket>();
  readonly #server = createServer({ allowHalfOpen: true }, (peer) => this.#passOn(peer));
  readonly #port: number;
  readonly #to: number;

  constructor(port: number, to: number) {
    this.#port = port;
    this.#to = to;
  }

  async open(): Promise<void> {
    await once(this.#server.listen(this.#port, '127.0.0.1'), 'listening');
  }

  /** Refuses connections from now on and breaks those that are open, as an engine that was killed does. */
  async close(): Promise<void> {
    const closed = new Promise<void>((resolve) => void this.#server.close(() => resolve()));
    for (const socket of this.#connections) socket.destroy();
    await closed;
  }

  #passOn(peer: Socket): void {
    const engine = connect({ port: this.#to, host: '127.0.0.1', allowHalfOpen: true });
    for (const socket of [peer, engine]) {
      this.#connections.add(socket.setNoDelay(true));
      socket.on('error', () => socket.destroy()).once('close', () => this.#connections.delete(socket));
    }
    peer.pipe(engine);
    engine.pipe(peer);
    // What the engine still sends is read: it would find this connection reset otherwise.
    peer.once('close', () => engine.end().resume());
    engine.once('close', () => peer.destroy());
  }
}
