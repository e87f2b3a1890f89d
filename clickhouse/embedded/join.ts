import { connect, type Socket } from 'node:net';
import type { Server } from '../client.ts';
import { type Access, isProof, newNonce, proofOf } from './access.ts';
import { nextLine } from './next-line.ts';
import { type EmbeddedState, type Greeting, parseGreeting } from './state.ts';

const greetingLimitMs = 5_000;

/** A hold on the embedded ClickHouse, which runs as long as anybody holds a lease. */
export interface EmbeddedLease {
  /** `http://127.0.0.1:PORT`; stays the same when the engine is restarted. */
  readonly url: string;
  /** The server and the user who may do everything. */
  readonly address: Server;
  /** The server and the user who reads what reports read. */
  readonly reporter: Server;
  /** The engine process at the time of the lease; a restart changes it. */
  readonly pid: number;
  /** Resolves if the supervisor goes away while the lease is held. */
  readonly lost: Promise<void>;
  /**
   * Safe to repeat. For the last lease, resolves when the engine has stopped and clickhouse.json is gone. Close
   * clients first: ClickHouse waits 5 s for open connections, idle ones too, before it drops them.
   */
  release(): Promise<void>;
}

/**
 * Takes a lease from the supervisor of `dataDir`, a real path, that `state` names. Undefined when no supervisor runs, when
 * it is stopping, or when the port belongs to somebody who does not know the secret (known within 10 s). Who that is
 * learns nothing that would let them in elsewhere.
 */
export async function joinEmbedded(
  dataDir: string,
  state: EmbeddedState,
): Promise<{ lease: EmbeddedLease; supervisorPid: number } | undefined> {
  const socket = connect({ host: '127.0.0.1', port: state.leasePort });
  // An error is followed by `close`, which is handled.
  socket.on('error', () => undefined);
  const greeting = await greetingOn(socket, dataDir, state.secret);
  if (greeting?.dataDir !== dataDir) {
    socket.destroy();
    return undefined;
  }
  return { lease: leaseOn(socket, greeting, state), supervisorPid: greeting.supervisorPid };
}

/** Leases.ts is the other side: nonce, nonce and proof, proof and greeting, a line each. */
async function greetingOn(socket: Socket, dataDir: string, secret: string): Promise<Greeting | undefined> {
  const supervisor = await nextLine(socket, greetingLimitMs);
  if (supervisor === undefined) return undefined;
  const nonces = { supervisor, holder: newNonce() };
  socket.write(`${nonces.holder} ${proofOf(secret, 'holder', nonces, dataDir)}\n`);
  const [, proof = '', text = ''] =
    /^(\w+) (.*)$/.exec((await nextLine(socket, greetingLimitMs)) ?? '') ?? [];
  return isProof(proof, proofOf(secret, 'supervisor', nonces, text)) ? parseGreeting(text) : undefined;
}

function leaseOn(socket: Socket, { url, pid }: Greeting, { passwords }: Access): EmbeddedLease {
  let released = false;
  const closed = new Promise<void>((resolve) => {
    socket.once('close', () => resolve());
  });
  const lost = new Promise<void>((resolve) => {
    void closed.then(() => !released && resolve());
  });
  // No more data follows, but the end is only noticed while reading.
  socket.resume();
  return {
    url,
    address: { url, user: 'adtally', password: passwords.adtally },
    reporter: { url, user: 'reporter', password: passwords.reporter },
    pid,
    lost,
    release() {
      released = true;
      socket.end();
      return closed;
    },
  };
}
