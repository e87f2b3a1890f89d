import { once } from 'node:events';
import { createServer, type Server, type Socket } from 'node:net';
import { isProof, newNonce, proofOf } from './access.ts';
import { nextLine } from './next-line.ts';
import type { Greeting } from './state.ts';

const idleLimitMs = 15_000;
const proofLimitMs = 5_000;

type Nonces = Parameters<typeof proofOf>[2];

/**
 * Keeps track of the holders of an embedded ClickHouse. A lease is a connection and lasts exactly as long. Any process
 * of the machine can connect; who does not prove that it knows the secret gets a random number and holds nothing.
 */
export class Leases {
  /** Resolves with the reason when the last lease has ended, or when none was taken within 15 s of the first greeting. */
  readonly unused: Promise<string>;
  readonly port: number;
  readonly #server: Server;
  readonly #dataDir: string;
  readonly #secret: string;
  readonly #unproven = new Set<Socket>();
  readonly #held = new Map<Socket, Nonces>();
  /** Ended by their holders but not yet by us: the last holder waits here until the engine has stopped. */
  readonly #ended = new Set<Socket>();
  readonly #greeted = new Set<Socket>();
  #greeting: string | undefined;
  /** Runs from the first greeting on: nobody can take a lease before. */
  #idle: NodeJS.Timeout | undefined;
  #tellUnused: (reason: string) => void = () => undefined;
  #refusing = false;

  /** Listens on a loopback port of the system's choice. */
  static async listen(dataDir: string, secret: string): Promise<Leases> {
    // Half open, so that a holder that has ended its side still learns when the engine is gone.
    const server = createServer({ allowHalfOpen: true });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const address = server.address();
    if (address === null || typeof address === 'string') throw new Error('the lease port has no number');
    return new Leases(server, address.port, dataDir, secret);
  }

  private constructor(server: Server, port: number, dataDir: string, secret: string) {
    this.#server = server;
    this.port = port;
    this.#dataDir = dataDir;
    this.#secret = secret;
    this.unused = new Promise((resolve) => {
      this.#tellUnused = resolve;
      server.on('connection', async (socket) => {
        const nonces = await this.#prove(socket);
        if (nonces === undefined) return socket.destroy();
        clearTimeout(this.#idle);
        this.#hold(socket, nonces, () => resolve('the last lease ended'));
      });
    });
  }

  /** Sends the greeting to every holder that has not had one, present and future. */
  greet(greeting: Greeting): void {
    this.#idle ??= setTimeout(() => this.#tellUnused('no lease was taken'), idleLimitMs).unref();
    this.#greeting = JSON.stringify(greeting);
    for (const [socket, nonces] of this.#held) this.#welcome(socket, nonces);
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
    const sockets = [...this.#held.keys(), ...this.#ended];
    this.#held.clear();
    for (const socket of this.#unproven) socket.destroy();
    for (const socket of sockets) socket.destroySoon();
  }

  /** Undefined when the other side does not know the secret, or when no more holders are accepted. */
  async #prove(socket: Socket): Promise<Nonces | undefined> {
    // A holder that is killed resets the connection; `close` follows and ends the lease.
    socket.on('error', () => undefined);
    this.#unproven.add(socket);
    const supervisor = newNonce();
    socket.write(`${supervisor}\n`);
    const [, holder = '', proof = ''] =
      /^(\w+) (\w+)$/.exec((await nextLine(socket, proofLimitMs)) ?? '') ?? [];
    this.#unproven.delete(socket);
    const nonces = { supervisor, holder };
    const proven = isProof(proof, proofOf(this.#secret, 'holder', nonces, this.#dataDir));
    return proven && !this.#refusing ? nonces : undefined;
  }

  #hold(socket: Socket, nonces: Nonces, lastEnded: () => void): void {
    this.#held.set(socket, nonces);
    this.#welcome(socket, nonces);
    const end = (): void => {
      if (!this.#held.delete(socket)) return;
      if (this.#refusing || this.#held.size === 0) this.#ended.add(socket);
      else socket.destroySoon();
      if (this.#held.size === 0) lastEnded();
    };
    socket.once('end', end).once('close', end).resume();
  }

  #welcome(socket: Socket, nonces: Nonces): void {
    if (this.#greeting === undefined || this.#greeted.has(socket)) return;
    this.#greeted.add(socket);
    socket.write(`${proofOf(this.#secret, 'supervisor', nonces, this.#greeting)} ${this.#greeting}\n`);
  }
}
