import { randomBytes } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { connect as dial } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { type Address, connect } from '../../clickhouse/client.ts';
import { acquireEmbedded } from '../../clickhouse/embedded/embedded.ts';
import { migrate } from '../../clickhouse/migrate/migrate.ts';
import { createToken } from '../../src/accounts/tokens.ts';
import { startOf } from '../support/compiled.ts';
import { malformed } from '../support/malformed.ts';
import { environmentOf, listening, startProcess } from '../support/process.ts';
import { seededRandom } from '../support/random.ts';

/** A name that only another account's rows hold. */
const foreign = 'of-another-account-5c1e';
/** What must never reach a caller: statements, tables, files, stacks, the engine's name, tokens, foreign rows. */
const inside =
  /\bselect\b|insert into|\bfrom \(|campaigns_date|fuzz_[0-9a-f]|clickhouse|code: \d|\.[tj]s\b|node_modules|\n {4}at |adt_|of-another-account/i;

export interface FuzzResult {
  /** Answers by status; 0: the connection was closed without one. */
  readonly statuses: Record<string, number>;
  /** What must not be, with the message that caused it; at most ten. */
  readonly faults: readonly string[];
}

interface FuzzOptions {
  readonly url: string;
  /** Of an account without rows. */
  readonly token: string;
  readonly requests: number;
  readonly seed: number;
}

/** Sends seeded malformed requests, 32 at a time, and judges every answer. */
export async function fuzz({ url, token, requests, seed }: FuzzOptions): Promise<FuzzResult> {
  const random = seededRandom(seed);
  const statuses: Record<string, number> = {};
  const faults: string[] = [];
  let sent = 0;
  const caller = async () => {
    while (sent < requests && faults.length < 10) {
      const n = ++sent;
      const message = malformed(random, token);
      const raw = await exchange(Number(new URL(url).port), message);
      const answer = raw.replace(/^HTTP\/1\.1 100 Continue\r\n\r\n/, '');
      const status = Number(/^HTTP\/1\.1 (\d{3})/.exec(answer)?.[1] ?? 0);
      statuses[status] = (statuses[status] ?? 0) + 1;
      const fault = judge(status, answer);
      if (fault)
        faults.push(
          `request ${n}: ${fault}\n${message.toString('latin1').slice(0, 600)}\n→ ${answer.slice(0, 600)}`,
        );
    }
  };
  await Promise.all(Array.from({ length: 32 }, caller));
  return { statuses, faults };
}

/** What is wrong with an answer; undefined when nothing is. */
function judge(status: number, answer: string): string | undefined {
  if (status >= 500) return 'a 5xx';
  const end = answer.indexOf('\r\n\r\n');
  const headers = answer.slice(0, end);
  const body = answer.slice(end + 4);
  if (status >= 400) {
    const problem = /^content-type: application\/problem\+json$/im.test(headers);
    if (!problem) return 'no problem details';
    if (body && !body.includes(`"status":${status}`)) return 'another status in the body';
  }
  // The pages about the service itself name what they describe.
  const page = status === 200 && !/^ratelimit:/im.test(headers);
  const leak = page ? undefined : inside.exec(answer);
  return leak ? `it leaks ${leak[0]}` : undefined;
}

/** What comes back until the service closes; a message that it waits for longer is cut off by us. */
function exchange(port: number, message: Buffer): Promise<string> {
  return new Promise((resolve) => {
    let answer = '';
    const socket = dial({ host: '127.0.0.1', port });
    socket.setEncoding('latin1').on('data', (text: string) => {
      answer += text;
    });
    socket.on('error', () => undefined).once('close', () => resolve(answer));
    let silent = 0;
    socket.setTimeout(300, () => {
      // Ending our side tells the service that the rest never comes.
      if (silent++ === 0) socket.end();
      else if (silent > 60) {
        answer ||= 'HTTP/1.1 599 no answer\r\n\r\n';
        socket.destroy();
      }
    });
    socket.write(message);
  });
}

/** Rows of another account, and a token of an account that has none. */
export async function prepareFuzz(address: Address): Promise<string> {
  const store = connect(address);
  try {
    await store.command({
      query: `INSERT INTO campaigns_date (account_id, day, campaign_id, impressions)
              SELECT '${foreign}', toDate('2026-03-01') + number, '${foreign}', 1 FROM numbers(30)`,
    });
    return await createToken(store, { account: 'fuzzer', label: '' });
  } finally {
    await store.close();
  }
}

async function main(): Promise<void> {
  const { values } = parseArgs({ options: { requests: { type: 'string' }, seed: { type: 'string' } } });
  const seed = Number(values.seed ?? randomBytes(4).readUInt32BE());
  const requests = Number(values.requests ?? 100_000);
  const folder = await mkdtemp(join(tmpdir(), 'adtally-fuzz-'));
  const lease = await acquireEmbedded(folder);
  const database = `fuzz_${randomBytes(4).toString('hex')}`;
  const address = { ...lease.address, database };
  try {
    await migrate(address);
    const token = await prepareFuzz(address);
    const serve = startProcess(process.execPath, [...startOf('src/cli'), 'serve'], {
      ...environmentOf(address),
      PORT: '0',
      RATE_LIMIT_REQUESTS: '10000000',
    });
    try {
      const startedAt = performance.now();
      const result = await fuzz({ url: await listening(serve), token, requests, seed });
      const seconds = Math.round((performance.now() - startedAt) / 1000);
      process.stdout.write(`${JSON.stringify({ seed, requests, seconds, statuses: result.statuses })}\n`);
      for (const fault of result.faults) process.stdout.write(`${fault}\n\n`);
      if (result.faults.length > 0) process.exitCode = 1;
    } finally {
      await serve.kill('SIGTERM');
    }
  } finally {
    await lease.release();
    await rm(folder, { recursive: true, force: true });
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await main();
