import { connect, type Socket } from 'node:net';
import { type Greeting, parseGreeting } from './state.ts';

const greetingLimitMs = 2_000;
const maxGreetingChars = 64 * 1024;

/** A hold on the embedded ClickHouse: it serves at `url` as long as somebody holds one. */
export interface EmbeddedLease {
  /** `http://127.0.0.1:PORT`; stays the same when the engine is restarted. */
  readonly url: string;
  readonly tcpPort: number;
  /** Of the engine process, at the time of the lease. */
  readonly pid: number;
  /** Resolves if the supervisor goes away while the lease is held. */
  readonly lost: Promise<void>;
  /**
   * Idempotent. Of the last lease: resolves once the engine has stopped and clickhouse.json is gone. Close
   * your clients first: the engine waits 5 s for open connections, idle ones too, before it drops them.
   */
  release(): Promise<void>;
}

/**
 * Takes a lease from the supervisor that listens on `leasePort` for `dataDir`, a real path; undefined when
 * there is none, when it is stopping, or when the port is another's by now (known after 2 s at most).
 */
export async function joinEmbedded(
  dataDir: string,
  leasePort: number,
): Promise<{ lease: EmbeddedLease; supervisorPid: number } | undefined> {
  const socket = connect({ host: '127.0.0.1', port: leasePort });
  // An error is followed by `close`, which says the same.
  socket.on('error', () => undefined);
  const greeting = await greetingOn(socket);
  if (greeting?.dataDir !== dataDir) {
    socket.destroy();
    return undefined;
  }
  return { lease: leaseOn(socket, greeting), supervisorPid: greeting.supervisorPid };
}

function greetingOn(socket: Socket): Promise<Greeting | undefined> {
  return new Promise((resolve) => {
    let text = '';
    const timer = setTimeout(() => settle(undefined), greetingLimitMs);
    const settle = (greeting: Greeting | undefined): void => {
      clearTimeout(timer);
      socket.off('data', onData).off('close', onClose);
      resolve(greeting);
    };
    const onClose = (): void => settle(undefined);
    const onData = (chunk: Buffer): void => {
      text += chunk.toString();
      if (text.includes('\n') || text.length > maxGreetingChars) settle(parseGreeting(text));
    };
    socket.on('data', onData).on('close', onClose);
  });
}

function leaseOn(socket: Socket, { url, tcpPort, pid }: Greeting): EmbeddedLease {
  let released = false;
  const closed = new Promise<void>((resolve) => {
    socket.once('close', () => resolve());
  });
  const lost = new Promise<void>((resolve) => {
    void closed.then(() => !released && resolve());
  });
  // Nothing more is said, but the end is only seen by who reads.
  socket.resume();
  return {
    url,
    tcpPort,
    pid,
    lost,
    release() {
      released = true;
      socket.end();
      return closed;
    },
  };
}
