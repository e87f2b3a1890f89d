import { once } from 'node:events';
import { createServer, type Server, type Socket } from 'node:net';
import type { Greeting } from './state.ts';

const idleLimitMs = 15_000;

/** Keeps track of the holders of an embedded ClickHouse. A lease is a connection and lasts exactly as long. */
export class Leases {
  /** Resolves with the reason when the last lease has ended, or when none was taken within 15 s. */
  readonly unused: Promise<string>;
  readonly port: number;
  readonly #server: Server;
  readonly #held = new Set<Socket>();
  /** Ended by their holders but not yet by us: the last holder waits here until the engine has stopped. */
  readonly #ended = new Set<Socket>();
  readonly #greeted = new Set<Socket>();
  #greeting: string | undefined;
  #refusing = false;

  /** Listens on a loopback port of the system's choice. */
  static async listen(): Promise<Leases> {
    // Half open, so that a holder that has ended its side still learns when the engine is gone.
    const server = createServer({ allowHalfOpen: true });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const address = server.address();
    if (address === null || typeof address === 'string') throw new Error('the lease port has no number');
    return new Leases(server, address.port);
  }

  private constructor(server: Server, port: number) {
    this.#server = server;
    this.port = port;
    this.unused = new Promise((resolve) => {
      const timer = setTimeout(() => resolve('no lease was taken'), idleLimitMs).unref();
      server.on('connection', (socket) => {
        clearTimeout(timer);
        this.#open(socket, () => resolve('the last lease ended'));
      });
    });
  }

  /** Sends the greeting to every holder that has not had one, present and future. */
  greet(greeting: Greeting): void {
    this.#greeting = `${JSON.stringify(greeting)}\n`;
    for (const socket of this.#held) this.#welcome(socket);
  }

  /** Makes new holders wait until the next greeting. */
  holdGreetings(): void {
    this.#greeting = undefined;
  }

  /** Accepts no more holders. */
  refuse(): void {
    this.#refusing = true;
    this.#server.close();
  }

  /** Ends every lease; a holder that did not release it sees it as lost. */
  close(): void {
    this.refuse();
    const sockets = [...this.#held, ...this.#ended];
    this.#held.clear();
    for (const socket of sockets) socket.destroySoon();
  }

  #open(socket: Socket, lastEnded: () => void): void {
    // A holder that is killed resets the connection; `close` follows and ends the lease.
    socket.on('error', () => undefined);
    if (this.#refusing) {
      socket.destroy();
      return;
    }
    this.#held.add(socket);
    this.#welcome(socket);
    const end = (): void => {
      if (!this.#held.delete(socket)) return;
      if (this.#refusing || this.#held.size === 0) this.#ended.add(socket);
      else socket.destroySoon();
      if (this.#held.size === 0) lastEnded();
    };
    socket.once('end', end).once('close', end).resume();
  }

  #welcome(socket: Socket): void {
    if (this.#greeting === undefined || this.#greeted.has(socket)) return;
    this.#greeted.add(socket);
    socket.write(this.#greeting);
  }
}
