import { connect as dial } from 'node:net';
import { expect, test } from 'vitest';
import { createToken } from '../../../src/accounts/tokens.ts';
import { openLog } from '../../../src/observe/log.ts';
import { thorough } from '../../support/mode.ts';
import { testSeed as seed, seededRandom, testRounds } from '../../support/random.ts';
import { useService } from '../../support/service.ts';
import { useStore } from '../../support/store.ts';
import { headerOf, type ReceivedAnswer, receivedAnswers } from '../received-answers.ts';
import { type Conversation, conversation } from './conversations.ts';

/** A name that only another account's rows hold. */
const foreign = 'of-another-account-5c1e';
/** What must never reach a caller: statements, tables, files, stacks, the engine's name, tokens, foreign rows. */
const inside =
  /\bselect\b|insert into|\bfrom \(|campaigns_date|test_[0-9a-f]{12}|clickhouse|code: \d|\.[tj]s\b|node_modules|\n {4}at |adt_|of-another-account/i;

interface FuzzResult {
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
async function fuzz({ url, token, requests, seed }: FuzzOptions): Promise<FuzzResult> {
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
  if (status >= 500) return 'a 5xx';
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
  const isLink = body.startsWith('{"result":{"link":');
  return old && isReport && !isLink ? 'a report over HTTP/1.0' : undefined;
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

/** Twice what a request may take to arrive. */
const answerLimitMs = 60_000;

/** What comes back until the service closes the connection, or until we do. */
function exchange(port: number, { pieces, ending, all }: Conversation): Promise<string> {
  return new Promise((resolve) => {
    let given = '';
    const socket = dial({ host: '127.0.0.1', port, noDelay: true });
    socket.setEncoding('latin1').on('data', (text: string) => {
      given += text;
    });
    const limit = setTimeout(() => {
      given ||= 'HTTP/1.1 599 no answer\r\n\r\n';
      socket.destroy();
    }, answerLimitMs);
    socket.on('error', () => undefined);
    socket.once('close', () => {
      clearTimeout(limit);
      resolve(given);
    });
    // Ending our side tells the service that the rest never comes. A caller that has sent all just waits.
    if (!all) socket.setTimeout(300, () => socket.end());
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

const requests = testRounds(thorough ? 2_000 : 400);
const db = useStore();
const failures: string[] = [];
const log = openLog('error', { write: (line) => void failures.push(line) });
// Without a secret of its own it would look for one in the folder of an embedded store, and there is no such folder.
const env = { RATE_LIMIT_REQUESTS: '1000000', LINK_SECRET: 'of these tests, which is long enough' };
const service = useService(db, env, log);

test(`no request that is malformed, old, broken or pipelined ends in a 5xx, in an answer without problem details or to another request, or in a leak (seed ${seed})`, async () => {
  await db.store.command({
    query: `INSERT INTO campaigns_date (account_id, day, campaign_id, impressions)
            SELECT '${foreign}', toDate('2026-03-01') + number, '${foreign}', 1 FROM numbers(30)`,
  });
  const token = await createToken(db.store, { account: 'fuzzer', label: '' });
  const { statuses, kinds, faults } = await fuzz({ url: service.url, token, requests, seed });
  console.info(
    `fuzz: requests by kind ${JSON.stringify(kinds)}, answers by status ${JSON.stringify(statuses)}`,
  );
  expect(faults).toEqual([]);
  expect(failures).toEqual([]);
  await expect
    .poll(async () =>
      (await (await fetch(`${service.url}/metrics`)).text()).match(/^adtally_reports_\w+ .*$/gm),
    )
    .toEqual(['adtally_reports_running 0', 'adtally_reports_held 0', 'adtally_reports_waiting 0']);
  expect(Object.keys(statuses)).toEqual(
    expect.arrayContaining(['200', '400', '401', '404', '405', '415', '426']),
  );
  expect((await service.report('/v1/campaigns', 'fuzzer', '2026-03-01', '2026-03-31')).rows).toEqual([]);
});
