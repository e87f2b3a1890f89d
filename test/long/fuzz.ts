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
import { type Conversation, conversation } from '../support/conversations.ts';
import { environmentOf, listening, peakMemoryMb, startProcess } from '../support/process.ts';
import { seededRandom } from '../support/random.ts';
import { headerOf, type ReceivedAnswer, receivedAnswers } from '../support/received-answers.ts';

/** A name that only another account's rows hold. */
const foreign = 'of-another-account-5c1e';
/** What must never reach a caller: statements, tables, files, stacks, the engine's name, tokens, foreign rows. */
const inside =
  /\bselect\b|insert into|\bfrom \(|campaigns_date|fuzz_[0-9a-f]|clickhouse|code: \d|\.[tj]s\b|node_modules|\n {4}at |adt_|of-another-account/i;

export interface FuzzResult {
  /** Answers by status; 0: a connection that was closed without one. */
  readonly statuses: Record<string, number>;
  /** Requests by the kind of their conversation. */
  readonly kinds: Record<string, number>;
  /** What must not be, with what caused it; at most ten. */
  readonly faults: readonly string[];
}

interface FuzzOptions {
  readonly url: string;
  /** Of an account without rows. */
  readonly token: string;
  readonly requests: number;
  readonly seed: number;
}

/** Has seeded conversations, 32 at a time, and judges every answer. */
export async function fuzz({ url, token, requests, seed }: FuzzOptions): Promise<FuzzResult> {
  const random = seededRandom(seed);
  const statuses: Record<string, number> = {};
  const kinds: Record<string, number> = {};
  const faults: string[] = [];
  const port = Number(new URL(url).port);
  let sent = 0;
  const caller = async () => {
    while (sent < requests && faults.length < 10) {
      const n = sent + 1;
      const spoken = conversation(random, token, n);
      sent += spoken.requests;
      kinds[spoken.kind] = (kinds[spoken.kind] ?? 0) + spoken.requests;
      const given = await exchange(port, spoken);
      const answers = receivedAnswers(given);
      for (const { status } of answers) statuses[status] = (statuses[status] ?? 0) + 1;
      if (answers.length === 0) statuses[0] = (statuses[0] ?? 0) + 1;
      const fault =
        answers.map((answer) => judge(answer, spoken)).find(Boolean) ?? judgeOrder(answers, spoken);
      if (fault) {
        const message = Buffer.concat(spoken.pieces).toString('latin1').slice(0, 1_500);
        faults.push(`request ${n}, ${spoken.kind}: ${fault}\n${message}\n→ ${given.slice(0, 1_500)}`);
      }
    }
  };
  await Promise.all(Array.from({ length: 32 }, caller));
  return { statuses, kinds, faults };
}

/** What is wrong with an answer; undefined when nothing is. */
function judge(answer: ReceivedAnswer, { kind, pieces }: Conversation): string | undefined {
  const { status, headers, body } = answer;
  if (status === 0) return 'what is no answer';
  if (status >= 500 && status !== 501) return 'a 5xx';
  if (status >= 400 && !isProtocolError(answer, pieces)) {
    if (headerOf(answer, 'content-type') !== 'application/problem+json') return 'no problem details';
    if (body && !body.includes(`"status":${status}`)) return 'another status in the body';
  }
  // The pages about the service itself name what they describe.
  const isReport = status === 200 && headerOf(answer, 'ratelimit') !== undefined;
  const leak = status !== 200 || isReport ? inside.exec(headers + body) : undefined;
  if (leak) return `it leaks ${leak[0]}`;
  const old =
    kind === 'old' && pieces.some((piece) => /^[^\r\n]* HTTP\/1\.0\r?\n/.test(piece.toString('latin1')));
  return old && isReport ? 'a report over HTTP/1.0' : undefined;
}

/** Whether /mcp refuses a message in the way of its protocol, which has no problem details. */
function isProtocolError({ body }: ReceivedAnswer, pieces: readonly Buffer[]): boolean {
  const asked = pieces.some((piece) => piece.includes('POST /mcp'));
  return asked && /^\{"jsonrpc":"2\.0","error":\{"code":-32\d{3},/.test(body);
}

/** What is wrong with all answers of a connection together. */
function judgeOrder(answers: readonly ReceivedAnswer[], { expected, all }: Conversation): string | undefined {
  const owed = [...expected];
  for (const [at, answer] of answers.slice(0, owed.length).entries()) {
    const [id, statuses] = owed[at] ?? [];
    const { status, whole } = answer;
    if (headerOf(answer, 'x-request-id') !== id) return `answer ${at} is that of another request`;
    if (!statuses?.includes(status)) return `answer ${at} is ${status}`;
    if (!whole && all) return `answer ${at} breaks off`;
  }
  return all && answers.length !== owed.length ? `${answers.length} answers` : undefined;
}

/** What comes back until the service closes; what it waits for longer is cut off by us. */
function exchange(port: number, { pieces, ending, all }: Conversation): Promise<string> {
  return new Promise((resolve) => {
    let given = '';
    const socket = dial({ host: '127.0.0.1', port, noDelay: true });
    socket.setEncoding('latin1').on('data', (text: string) => {
      given += text;
    });
    socket.on('error', () => undefined).once('close', () => resolve(given));
    let silent = 0;
    socket.setTimeout(300, () => {
      silent++;
      // Ending our side tells the service that the rest never comes. A caller that has sent all just waits.
      if (silent === 1 && !all) socket.end();
      else if (silent > 60) {
        given ||= 'HTTP/1.1 599 no answer\r\n\r\n';
        socket.destroy();
      }
    });
    const send = (n: number) => {
      const piece = pieces[n];
      if (piece) return void socket.write(piece, () => setImmediate(send, n + 1));
      if (ending === 'ends') socket.end();
      else if (ending === 'leaves') socket.destroy();
      else if (ending === 'resets') socket.resetAndDestroy();
    };
    socket.once('connect', () => send(0));
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
      const { faults, ...told } = await fuzz({ url: await listening(serve), token, requests, seed });
      const seconds = Math.round((performance.now() - startedAt) / 1000);
      const peakMb = Math.round(peakMemoryMb(serve.pid));
      process.stdout.write(`${JSON.stringify({ seed, requests, seconds, peakMb, ...told })}\n`);
      const { code, stderr } = await serve.kill('SIGTERM');
      const logged = stderr.split('\n').filter((line) => /"level":[56]0/.test(line));
      for (const fault of [...faults, ...logged.slice(0, 10)]) process.stdout.write(`${fault}\n\n`);
      if (faults.length > 0 || logged.length > 0 || code !== 0) process.exitCode = 1;
    } finally {
      await serve.kill('SIGTERM');
    }
  } finally {
    await lease.release();
    await rm(folder, { recursive: true, force: true });
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await main();
