import { connect, type Socket } from 'node:net';
import { type Greeting, parseGreeting } from './state.ts';

const greetingLimitMs = 2_000;
const maxGreetingChars = 64 * 1024;

/** A hold on the embedded ClickHouse, which runs as long as anybody holds a lease. */
export interface EmbeddedLease {
  /** `http://127.0.0.1:PORT`; stays the same when the engine is restarted. */
  readonly url: string;
  readonly tcpPort: number;
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
 * Takes a lease from the supervisor of `dataDir`, a real path, that listens on `leasePort`. Undefined when there is
 * none, when it is stopping, or when another program has the port now (known within 2 s).
 */
export async function joinEmbedded(
  dataDir: string,
  leasePort: number,
): Promise<{ lease: EmbeddedLease; supervisorPid: number } | undefined> {
  const socket = connect({ host: '127.0.0.1', port: leasePort });
  // An error is followed by `close`, which is handled.
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
  // No more data follows, but the end is only noticed while reading.
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
