import { once } from 'node:events';
import { createServer, connect as dial, type Server, type Socket } from 'node:net';

/** What becomes of a connection once so many bytes of answers have passed. */
export interface Fate {
  readonly afterBytes: number;
  /** For how long nothing more is said before both sides are cut off. */
  readonly silentMs: number;
}

/**
 * Between programs and ClickHouse: it answers what ClickHouse answers, and breaks off where it is told, so that an answer may begin with
 * 200 and end anywhere, or never come. A request never goes on when its sender was cut off from it.
 */
export class FaultyProxy {
  /** Decides about each new connection. */
  fate: () => Fate | undefined = () => undefined;
  readonly url: string;
  readonly #server: Server;
  readonly #sockets: Set<Socket>;

  private constructor(server: Server, port: number, sockets: Set<Socket>) {
    this.#server = server;
    this.url = `http://127.0.0.1:${port}`;
    this.#sockets = sockets;
  }

  static async start(to: string): Promise<FaultyProxy> {
    const { hostname, port } = new URL(to);
    const sockets = new Set<Socket>();
    const server = createServer();
    await once(server.listen(0, '127.0.0.1'), 'listening');
    const address = server.address();
    const proxy = new FaultyProxy(server, typeof address === 'object' ? (address?.port ?? 0) : 0, sockets);
    server.on('connection', (caller) => proxy.#join(caller, dial(Number(port), hostname)));
    return proxy;
  }

  async stop(): Promise<void> {
    this.#server.close();
    for (const socket of this.#sockets) socket.destroy();
  }

  #join(caller: Socket, server: Socket): void {
    const fate = this.fate();
    const cut = () => {
      caller.destroy();
      server.destroy();
    };
    let passed = 0;
    let isOver = false;
    for (const socket of [caller, server]) {
      this.#sockets.add(socket);
      socket.once('close', () => this.#sockets.delete(socket));
      socket.on('error', cut).once('close', cut);
    }
    caller.on('data', (bytes) => {
      if (!isOver && !server.write(bytes)) caller.pause();
    });
    server.on('drain', () => caller.resume());
    server.on('data', (bytes) => {
      if (isOver) return;
      if (fate && passed + bytes.length > fate.afterBytes) {
        isOver = true;
        caller.write(bytes.subarray(0, fate.afterBytes - passed));
        setTimeout(cut, fate.silentMs);
        return;
      }
      passed += bytes.length;
      if (!caller.write(bytes)) server.pause();
    });
    caller.on('drain', () => server.resume());
  }
}
