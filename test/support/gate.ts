import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { afterAll, beforeAll } from 'vitest';
import { freePort } from '../../bench/harness/free-ports.ts';
import { reachedBy } from './statements-between.ts';
import type { TestStore } from './store.ts';

/** A way to a server that can be closed, which cuts all connections, and opened again. */
export interface Gate {
  readonly url: string;
  close(): void;
  open(): Promise<void>;
}

/** Opens a way to the server at a URL, on 127.0.0.1. */
export async function openGate(to: string, onSent: (bytes: Buffer) => void = () => {}): Promise<Gate> {
  const target = new URL(to);
  const sockets = new Set<Socket>();
  const server = createServer((from) => {
    const onward = connect(Number(target.port || 80), target.hostname);
    from.on('data', onSent);
    for (const [socket, other] of [
      [from, onward],
      [onward, from],
    ] as const) {
      sockets.add(socket);
      socket.on('error', () => other.destroy()).on('close', () => other.destroy());
      socket.pipe(other);
    }
  });
  const listen = async (port: number) => {
    server.listen(port, '127.0.0.1');
    await once(server, 'listening');
    return (server.address() as AddressInfo).port;
  };
  const port = await listen(await freePort());
  return {
    url: `http://127.0.0.1:${port}`,
    close: () => {
      server.close();
      for (const socket of sockets) socket.destroy();
      sockets.clear();
    },
    open: async () => void (await listen(port)),
  };
}

/** A store whose service is reached through a gate, which counts what the service sends. */
export function useCountedStore(test: TestStore): TestStore & { sent(text: string): number } {
  let gate: Gate | undefined;
  let all = '';
  beforeAll(async () => {
    gate = await openGate(test.address.url, (bytes) => {
      all += bytes.toString('latin1');
    });
  });
  afterAll(() => gate?.close());
  const sent = (text: string) => all.split(text).length - 1;
  const way = {
    get url() {
      return gate?.url ?? '';
    },
  };
  return Object.assign(reachedBy(way, test), { sent });
}
