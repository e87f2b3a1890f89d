import { randomBytes } from 'node:crypto';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { gzipSync } from 'node:zlib';
import { catalog } from '../../catalog/catalog.ts';
import { type Address, connect, type Store, select } from '../../clickhouse/client.ts';
import { verifyRollups } from '../../clickhouse/consistency/verify-rollups.ts';
import { retrying } from '../../clickhouse/retry.ts';
import { avroFile, recordOf } from './avro.ts';
import { embedded, startOf } from './compiled.ts';
import { type EventLine, ndjson } from './events.ts';
import { type Command, environmentOf, startProcess } from './process.ts';
import { seededRandom } from './random.ts';
import { createMigrated } from './store.ts';

/** Files to load and what they come to, counted line by line. */
export interface Input {
  readonly files: readonly string[];
  readonly rejected: number;
  readonly totals: Totals;
}

/** Sums as text: money in micros. */
interface Totals {
  readonly events: string;
  readonly impressions: string;
  readonly spend: string;
  readonly revenue: string;
}

/** NDJSON, CSV, packed NDJSON and Avro, months apart, with a faulty line here and there. */
export async function writeInput(
  folder: string,
  random: () => number,
  { events = 60_000, accounts = 3 } = {},
): Promise<Input> {
  let rejected = 0;
  const sums = { events: 0n, impressions: 0n, spend: 0n, revenue: 0n };
  const lines = Array.from({ length: events }, (_, n): EventLine => {
    const quantity = 1 + Math.floor(random() * 9);
    const [spend, revenue] = [Math.floor(random() * 1e7) - 1e6, Math.floor(random() * 1e7)];
    const faulty = random() < 0.0005;
    if (faulty) rejected++;
    else {
      sums.events += 1n;
      sums.impressions += BigInt(quantity);
      sums.spend += BigInt(spend);
      sums.revenue += BigInt(revenue);
    }
    return {
      event_id: `crash-${n}`,
      event_time: new Date(Date.UTC(2026, n % 3, 1 + Math.floor(random() * 28), 12)).toISOString(),
      event_type: 'impression',
      advertiser_id: `advertiser-${Math.floor(random() * accounts)}`,
      campaign_id: `campaign-${Math.floor(random() * 9)}`,
      creative_id: `creative-${Math.floor(random() * 9)}`,
      publisher_id: `publisher-${Math.floor(random() * accounts)}`,
      ad_unit_id: `ad-unit-${Math.floor(random() * 9)}`,
      device: faulty ? 'a device whose name is longer than it may be' : 'mobile',
      quantity,
      spend: micros(spend),
      revenue: micros(revenue),
    };
  });
  const quarter = events / 4;
  const columns = Object.keys(lines[0] ?? {}) as (keyof EventLine)[];
  const csv = lines.slice(quarter, 2 * quarter).map((line) => columns.map((name) => line[name]).join(','));
  const types = Object.fromEntries(columns.map((name) => [name, name === 'quantity' ? 'long' : 'string']));
  const files = ['a.ndjson', 'b.csv', 'c.ndjson.gz', 'd.avro'].map((name) => join(folder, name));
  const contents = [
    ndjson(lines.slice(0, quarter)),
    `${columns.join(',')}\n${csv.join('\n')}\n`,
    gzipSync(ndjson(lines.slice(2 * quarter, 3 * quarter))),
    await avroFile(recordOf(types), lines.slice(3 * quarter), { codec: 'deflate', blockSize: 1 << 16 }),
  ];
  await Promise.all(files.map((file, n) => writeFile(file, contents[n] ?? '')));
  const totals = Object.fromEntries(Object.entries(sums).map(([name, sum]) => [name, String(sum)]));
  return { files, rejected, totals: totals as unknown as Totals };
}

function micros(amount: number): string {
  return `${amount < 0 ? '-' : ''}${Math.floor(Math.abs(amount) / 1e6)}.${String(Math.abs(amount) % 1e6).padStart(6, '0')}`;
}

export type Victim = 'loader' | 'clickhouse';

export interface CrashRun {
  /** Who is killed, round by round. */
  readonly victims: readonly Victim[];
  readonly seed: number;
  readonly events?: number;
  readonly onRound?: (text: string) => void;
}

/**
 * Loads the same input into a fresh database in every round, kills the victim with SIGKILL at a random moment,
 * repeats the same command until it succeeds, and compares events, rollups and rejected rows with the recount.
 * @throws at the first round that differs, naming seed, round and difference
 */
export async function crashRounds({ victims, seed, events, onRound }: CrashRun): Promise<void> {
  const random = seededRandom(seed);
  const folder = await mkdtemp(join(tmpdir(), 'adtally-crash-'));
  const dataDir = join(folder, 'data');
  const { acquireEmbedded } = await embedded();
  const lease = await acquireEmbedded(dataDir);
  try {
    const input = await writeInput(folder, random, { events });
    let fullMs = 0;
    // Round 0 is not disturbed: it shows how long a load takes.
    for (const [round, victim] of [undefined, ...victims].entries()) {
      const address = { ...lease.address, database: `crash_${randomBytes(4).toString('hex')}` };
      await createMigrated(address);
      const startedAt = performance.now();
      const killAfterMs = victim && fullMs * (0.1 + 0.95 * random());
      const attempts = await loadUntilDone(address, input.files, victim, killAfterMs, dataDir);
      if (round === 0) fullMs = performance.now() - startedAt;
      const difference = await compare(address, input).finally(() => dropDatabase(address));
      if (difference)
        throw new Error(`seed ${seed}, ${victim ?? 'nothing'} killed, round ${round}: ${difference}`);
      onRound?.(
        `round ${round}: ${victim ?? 'nothing'} killed after ${Math.round(killAfterMs ?? 0)} of ${Math.round(fullMs)} ms, ${attempts} attempts, equal`,
      );
    }
  } finally {
    await lease.release();
    await rm(folder, { recursive: true, force: true });
  }
}

async function loadUntilDone(
  address: Address,
  files: readonly string[],
  victim: Victim | undefined,
  killAfterMs: number | undefined,
  dataDir: string,
): Promise<number> {
  for (let attempt = 1; ; attempt++) {
    const loader = startLoader(address, files);
    if (attempt === 1 && killAfterMs !== undefined) {
      await delay(killAfterMs);
      if (victim === 'loader') await loader.kill('SIGKILL');
      else process.kill(JSON.parse(await readFile(join(dataDir, 'clickhouse.json'), 'utf8')).pid, 'SIGKILL');
    }
    const { code, stderr } = await loader.ended;
    if (code === 0 || code === 4) return attempt;
    if (attempt === 5) throw new Error(`the load failed ${attempt} times: ${stderr}`);
  }
}

/** `ingest events` of files, cut into many chunks. */
export function startLoader(address: Address, files: readonly string[]): Command {
  return startProcess(
    process.execPath,
    [...startOf('test/support/chunked-cli'), 'ingest', 'events', '--chunk-bytes', '900000', ...files],
    environmentOf(address),
  );
}

/** The first difference between the store and the recount; undefined when they are equal. */
export async function compare(address: Address, input: Input): Promise<string | undefined> {
  const store = connect(address);
  try {
    const expected = JSON.stringify({ ...input.totals, rejected: String(input.rejected) });
    // Killed after the load had ended, it may still be on its way back.
    const found = JSON.stringify(await retrying(() => totals(store)));
    if (found !== expected) return `the store has ${found}, the recount is ${expected}`;
    const { differences } = await verifyRollups(store, catalog);
    return differences.length > 0 ? JSON.stringify(differences.slice(0, 3)) : undefined;
  } finally {
    await store.close();
  }
}

async function dropDatabase(address: Address): Promise<void> {
  const store = connect(address);
  await store.command({ query: `DROP DATABASE ${address.database} SYNC` });
  await store.close();
}

async function totals(store: Store): Promise<unknown> {
  const [row] = await select(
    store,
    `SELECT toString(count()) AS events, toString(sum(impressions)) AS impressions,
            toString(toInt64(sum(spend) * 1000000)) AS spend, toString(toInt64(sum(revenue) * 1000000)) AS revenue,
            toString((SELECT count() FROM rejected_rows FINAL)) AS rejected FROM events`,
  );
  return row;
}
