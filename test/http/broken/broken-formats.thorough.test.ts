import { once } from 'node:events';
import { type IncomingMessage, request } from 'node:http';
import { join } from 'node:path';
import { finished } from 'node:stream/promises';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { connect, type Store } from '../../../clickhouse/client.ts';
import { createToken } from '../../../src/accounts/tokens.ts';
import { reportFormats } from '../../../src/report/formats.ts';
import { embedded } from '../../support/compiled.ts';
import { engineIn } from '../../support/embedded-processes.ts';
import { useFolder } from '../../support/folder.ts';
import { type Command, listening, useCommands } from '../../support/process.ts';
import { createMigrated } from '../../support/store.ts';
import { reportsRunning } from '../report-statements.ts';

const commands = useCommands();
const folder = useFolder();
const dataDir = join(folder, 'data');

const { json: _, ...rowFormats } = reportFormats;
const formats = Object.values(rowFormats);
const codings = ['identity', 'gzip', 'zstd', 'br'];

/**
 * Creative ids that do not compress make an answer of 69 MB, also packed. One of 50 MB fitted into the buffers on its
 * way (each of two sockets takes up to 32 MB) and came out whole, rightly, after the engine was gone.
 */
const rows = 180_000;
const dated = '/v1/campaigns/breakdowns/device_creative_date';
/** Grouped and sorted as a whole before its first byte. */
const undated = '/v1/campaigns/breakdowns/device_creative';

let serve: Command;
let url: string;
let token: string;

beforeAll(async () => {
  const lease = await (await embedded()).acquireEmbedded(dataDir);
  const address = { ...lease.address, database: 'adtally' };
  await createMigrated(address);
  const store = connect(address);
  await store.command({
    query: `INSERT INTO campaigns_device_creative_date (account_id, day, campaign_id, device, creative_id, impressions)
            SELECT 'large', toDate('2026-01-01') + intDiv(number, 1300), 'campaign', 'mobile',
                   base64Encode(randomString(384)), 1
            FROM numbers(${rows})`,
  });
  token = await createToken(store, { account: 'large', label: '' });
  await store.close();
  // One account may take half of the places. Between the first answer and the last a busy machine takes a minute.
  const limits = {
    RATE_LIMIT_REQUESTS: '100000',
    MAX_CONCURRENT_REPORTS: '64',
    SEND_TIMEOUT_SECONDS: '300',
  };
  serve = commands.start(['serve'], { DATA_DIR: dataDir, PORT: '0', ...limits });
  url = await listening(serve);
  await lease.release();
});

afterAll(async () => {
  await serve.kill('SIGTERM');
  await vi.waitUntil(() => !engine(), { timeout: 40_000 });
});

const engine = () => engineIn(dataDir);

async function withStore<T>(work: (store: Store) => Promise<T>): Promise<T> {
  const running = engine();
  if (!running) throw new Error('no engine runs');
  const store = connect({ ...running.address, database: 'adtally' });
  try {
    return await work(store);
  } finally {
    await store.close();
  }
}

const running = () => withStore(reportsRunning);
const kill = (id: string) =>
  withStore((store) =>
    store.command({ query: 'KILL QUERY WHERE query_id = {id:String}', query_params: { id } }),
  );

interface Asked {
  /** Format and coding. */
  readonly as: string;
  /** Fails when the connection breaks before there is an answer. */
  readonly answer: Promise<IncomingMessage>;
}

/** Asks for the same report in every format and coding at once. */
function askAll(path: string, { end = '2026-12-31', packed = codings } = {}): Asked[] {
  return formats.flatMap(({ clickhouse, mediaType }) =>
    packed.map((coding) => {
      const headers = {
        authorization: `Bearer ${token}`,
        'content-type': 'application/json',
        accept: mediaType,
        'accept-encoding': coding,
      };
      const sent = request(`${url}${path}`, { method: 'POST', agent: false, headers });
      const answer = once(sent, 'response').then(([response]) => response as IncomingMessage);
      // It is awaited later.
      answer.catch(() => undefined);
      sent.end(JSON.stringify({ start_time: '2026-01-01', end_time: end }));
      return { as: `${clickhouse} ${coding}`, answer };
    }),
  );
}

/** What its caller sees: an answer that is whole, one that breaks off, a problem, or no answer. */
async function outcome({ as, answer }: Asked): Promise<string> {
  const response = await answer.catch(() => undefined);
  if (!response) return `${as}: no answer`;
  response.resume();
  const ended = await finished(response).then(
    () => true,
    () => false,
  );
  expect(response.complete).toBe(ended);
  if (response.statusCode === 200) return `${as}: ${ended ? 'whole' : 'broken'}`;
  expect(response.headers['content-type']).toBe('application/problem+json');
  return `${as}: ${response.statusCode}`;
}

const outcomes = (asked: readonly Asked[]) => Promise.all(asked.map(outcome));
const all = (result: string) => askedAs.map((as) => `${as}: ${result}`);
const askedAs = formats.flatMap(({ clickhouse }) => codings.map((coding) => `${clickhouse} ${coding}`));

/** Answers that have begun and cannot have ended; nothing more of them is read for now. */
async function begunAnswers(): Promise<Asked[]> {
  const asked = askAll(dated);
  await Promise.all(asked.map(async ({ answer }) => once(await answer, 'readable')));
  return asked;
}

/** Problems, but for an answer that had just begun. */
function expectNoAnswer(seen: readonly string[]): void {
  expect(seen.filter((each) => !/: (500|broken)$/.test(each))).toEqual([]);
  expect(seen.filter((each) => each.endsWith('500'))).not.toEqual([]);
}

/** Every format is whole again, which also tells that the answers before were not broken anyway. */
async function expectWholeAnswers(): Promise<void> {
  await expect
    .poll(() => outcomes(askAll(dated, { end: '2026-01-01' })), { timeout: 30_000, interval: 200 })
    .toEqual(all('whole'));
}

function killEngine(): void {
  const pid = engine()?.pid;
  if (!pid) throw new Error('no engine runs');
  process.kill(pid, 'SIGKILL');
}

test('a statement killed before its first byte is a problem in every format', async () => {
  const asked = askAll(undated);
  let settled = 0;
  for (const { answer } of asked) answer.finally(() => settled++).catch(() => undefined);
  const kills: Promise<unknown>[] = [];
  let ids = await running();
  // A report starts a second statement when it turns out to be large, so what is killed is not counted.
  while (settled < asked.length || ids.length > 0) {
    kills.push(...ids.map(kill));
    ids = await running();
  }
  expectNoAnswer(await outcomes(asked));
  await Promise.all(kills);
  await expectWholeAnswers();
});

test('a statement killed in the middle breaks the transfer in every format', async () => {
  const asked = await begunAnswers();
  const ids = await running();
  expect(ids).toHaveLength(asked.length);
  // Not waited for: the engine ends some of them only once their caller reads on.
  const kills = ids.map(kill);
  await expect.poll(running, { timeout: 10_000 }).toEqual([]);
  expect(await outcomes(asked)).toEqual(all('broken'));
  await Promise.all(kills);
  await expectWholeAnswers();
});

test('ClickHouse killed before the first byte never makes an answer in any format', async () => {
  // A service that has seen how long they are starts the statement of each once, and all at the same time.
  const before = await outcomes(askAll(undated, { packed: ['identity'] }));
  expect(before.filter((each) => !each.endsWith('whole'))).toEqual([]);
  const asked = askAll(undated);
  // None ends by itself: an answer that nobody reads does not fit into the buffers on its way.
  const allRun = async () => (await running()).length === asked.length;
  await vi.waitUntil(allRun, { timeout: 20_000, interval: 10 });
  killEngine();
  expectNoAnswer(await outcomes(asked));
  await expectWholeAnswers();
});

test('ClickHouse killed in the middle breaks the transfer in every format', async () => {
  const asked = await begunAnswers();
  killEngine();
  expect(await outcomes(asked)).toEqual(all('broken'));
  await expectWholeAnswers();
});
