import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { type Address, connect, type Store } from '../../clickhouse/client.ts';
import { migrate } from '../../clickhouse/migrate/migrate.ts';
import { hashToken, newToken } from '../../src/accounts/tokens.ts';
import { accountName, crowd, drawAccount, insertCrowd, writeCrowdFile } from '../data/crowd.ts';
import { lastDays } from '../data/network.ts';
import { dropStore } from '../data/store.ts';
import { callRepeatedly, type HttpRequest } from '../harness/http-client.ts';
import { runLoader } from '../harness/loader.ts';
import { percentile, runInTurn, type Side } from '../harness/measure.ts';
import { type ServerProcess, startService } from '../harness/processes.ts';
import { reportRequest } from '../harness/requests.ts';
import { type Bench, type Outcome, report, type Scenario } from '../harness/scenario.ts';

const callers = 32;
const smallPaths = ['', '/breakdowns/date', '/breakdowns/device'].map((end) => `/v1/campaigns${end}`);
const smallDays = [1, 7, 30, 90];
const finest = '/v1/campaigns/breakdowns/device_creative_date';
const fileEvents = 2_000;

/**
 * What a service has to do on a day: a thousand accounts, some of which ask much more than others, nine times of ten for
 * a small report and else for a year in the finest breakdown, while new events are loaded all the time.
 */
export const mix: Scenario = async (bench) => {
  const address = { ...bench.server, database: 'bench_mix' };
  await dropStore(address);
  await migrate(address);
  const store = connect(address);
  const services: ServerProcess[] = [];
  try {
    bench.progress('filling the store');
    const events = Math.min(bench.events, 2_000_000);
    await insertCrowd(store, { from: 0, events, days: 365 });
    const tokens = await createTokens(store);
    const kept = await startService(bench.compiled, address);
    services.push(kept);
    const computed = await startService(bench.compiled, address, { ANSWER_CACHE_MEGABYTES: '0' });
    services.push(computed);
    const loads = new Loads(bench, store, address);
    const sideOf = (name: string, service: ServerProcess, loading: boolean): MixSide => {
      const times: number[] = [];
      const run = async () => {
        times.length = 0;
        const loader = loading ? loads.start() : undefined;
        const startedAt = performance.now();
        const isSmall = ({ url }: HttpRequest) => !url.endsWith(finest);
        const all = await callRepeatedly(() => draw(service, tokens), {
          callers,
          seconds: bench.callSeconds * 2,
          onAnswer: (request, ms) => isSmall(request) && times.push(ms),
        });
        const rate = all.length / ((performance.now() - startedAt) / 1000);
        await loader?.stop();
        return rate;
      };
      return { name, run, times };
    };
    return await measure(bench, loads, [
      sideOf('adtally, while a loader runs', kept, true),
      sideOf('adtally, alone', kept, false),
      sideOf('adtally without memory, while a loader runs', computed, true),
      sideOf('adtally without memory, alone', computed, false),
    ]);
  } finally {
    for (const service of services) await service.stop();
    await store.close();
    await dropStore(address);
  }
};

interface MixSide extends Side {
  /** Milliseconds of the small reports of its last run. */
  readonly times: readonly number[];
}

async function measure(bench: Bench, loads: Loads, sides: readonly MixSide[]): Promise<Outcome[]> {
  bench.progress(`${callers} callers of 1,000 accounts`);
  const p99 = new Map(sides.map(({ name }) => [name, [] as number[]]));
  const rates = await runInTurn(
    sides.map(({ name, run, times }) => ({
      name,
      run: async () => {
        const rate = await run();
        p99.get(name)?.push(percentile(times, 0.99));
        return rate;
      },
    })),
    bench.runs,
  );
  const what = `${callers} callers of ${crowd.accounts} accounts by Zipf, 90 % small reports`;
  return [
    { what, unit: 'requests/s', sides: rates, facts: { loads: loads.finished, events_a_load: fileEvents } },
    {
      what: `${what}: 99th percentile of the small`,
      unit: 'ms',
      sides: [...p99].map(([name, samples]) => ({
        name,
        samples: bench.runs > 0 ? samples.slice(1) : samples,
      })),
    },
  ];
}

/** A request by chance. */
function draw({ url }: ServerProcess, tokens: ReadonlyMap<string, string>): HttpRequest {
  const pick = <Of>(list: readonly Of[], otherwise: Of): Of =>
    list[Math.floor(Math.random() * list.length)] ?? otherwise;
  const account = drawAccount(Math.random());
  const asked = Math.random() < 0.9 ? report(pick(smallPaths, '/v1/campaigns'), 1) : report(finest, 1);
  const period = lastDays(asked.path === finest ? 365 : pick(smallDays, 1));
  return reportRequest(
    url,
    { ...asked, account, period },
    { authorization: `Bearer ${tokens.get(account)}`, 'accept-encoding': 'gzip' },
  );
}

async function createTokens(store: Store): Promise<Map<string, string>> {
  const accounts = Array.from({ length: crowd.accounts }, (_, n) => accountName(n + 1));
  const tokens = new Map(accounts.map((account) => [account, newToken()]));
  await store.insert({
    table: 'tokens',
    columns: ['id', 'account_id', 'hash', 'label', 'created_at'],
    values: [...tokens].map(([account, token]) => ({
      id: account,
      account_id: account,
      hash: hashToken(token),
      label: 'bench',
      created_at: new Date().toISOString().slice(0, 19).replace('T', ' '),
    })),
    format: 'JSONEachRow',
  });
  return tokens;
}

/** The loader, one small file after the other, each with new events of the last two days. */
class Loads {
  finished = 0;
  readonly #bench: Bench;
  readonly #store: Store;
  readonly #address: Address;
  #files = 0;

  constructor(bench: Bench, store: Store, address: Address) {
    this.#bench = bench;
    this.#store = store;
    this.#address = address;
  }

  start(): { stop(): Promise<void> } {
    let stopped = false;
    const loading = (async () => {
      while (!stopped) {
        const file = join(this.#bench.scratch, `crowd-${this.#files++}.ndjson`);
        const from = 1_000_000_000 + this.#files * fileEvents;
        await writeCrowdFile(this.#store, file, { from, events: fileEvents, days: 2 });
        await runLoader(this.#bench.compiled, this.#address, file);
        await rm(file);
        this.finished++;
      }
    })();
    // Whoever stops it is told.
    loading.catch(() => undefined);
    return {
      stop: async () => {
        stopped = true;
        await loading;
      },
    };
  }
}
