import { type Store, select } from '../../clickhouse/client.ts';
import { LocalFile } from '../../ingest/input/local-file.ts';
import { loadEvents } from '../../ingest/load/load-events.ts';
import { type EventLine, event, ndjson } from './events.ts';
import { useLoader } from './loader.ts';
import { outputOf } from './process.ts';
import { requireAgreement } from './rebuilt.ts';
import type { TestStore } from './store.ts';

export type Unloads = ReturnType<typeof useUnloads>;

export function useUnloads(db: TestStore) {
  const { own, file, run } = useLoader(db);

  /** Events of the current account, on the same days of one month in each test. */
  const events = (count: number, fields: Partial<EventLine> = {}): EventLine[] =>
    Array.from({ length: count }, (_, n) =>
      event({
        advertiser_id: own.account,
        event_time: `2026-03-0${1 + (n % 5)}T12:00:00Z`,
        spend: '0.1',
        ...fields,
      }),
    );

  /** Events of the current account, and what a rollup says that they cost. */
  async function counted(): Promise<[events: number, spent: string]> {
    const [row] = await select<{ events: number; spent: string }>(
      db.store,
      `SELECT toUInt32(count()) AS events,
         (SELECT toString(sum(c.spent)) FROM campaigns_date AS c WHERE account_id = {account:String}) AS spent
       FROM events WHERE advertiser_id = {account:String}`,
      { account: own.account },
    );
    return [row?.events ?? -1, row?.spent ?? ''];
  }

  /** The newest load of a kind. */
  const last = async (kind: string) => {
    const query = 'SELECT max(load_id) AS id FROM loads WHERE kind = {kind:String}';
    return (await select<{ id: string }>(db.store, query, { kind }))[0]?.id ?? '';
  };
  /** Writes the rejected rows of a load with a quantity that counts. */
  const corrected = async (id: string) => {
    const { stdout } = await run(['rejects', id, '--json']);
    return file('corrected.ndjson', stdout.replaceAll('"quantity":"0"', '"quantity":"1"'));
  };

  return {
    get account() {
      return own.account;
    },
    ...{ file, run, events, last, corrected, counted },
    /** Replays them; returns the replay. */
    replayed: async (id: string) => {
      await outputOf(run(['replay', id, await corrected(id)]));
      return last('replay');
    },
    /** Returns the id of the load. */
    load: async (path: string, chunkBytes = 20_000) => {
      const { loadId = '' } = await loadEvents({
        store: db.store,
        input: new LocalFile(path),
        chunkBytes,
        now: () => new Date(),
      });
      return loadId;
    },
    /** The same as `counted`, after a look whether rollups and ledger agree with all that is stored. */
    sound: async () => {
      await requireAgreement(db.store);
      return counted();
    },
  };
}

/** Every other one a month later. */
export const ofTwoMonths = (lines: readonly EventLine[]): EventLine[] =>
  lines.map((line, n) => (n % 2 ? { ...line, event_time: line.event_time.replace('-03-', '-04-') } : line));

/** As a file, every fifth of them faulty. */
export const withRejects = (lines: readonly EventLine[]): string =>
  ndjson(lines.map((line, n) => (n % 5 ? line : { ...line, quantity: 0 })));

/** The store, on which the first statement that matches fails: before it runs, or after. */
export function failingAt(store: Store, pattern: RegExp, when: 'before' | 'after'): Store {
  const failing: Store = Object.create(store);
  const orFail = async <Result>(query: string, send: () => Promise<Result>): Promise<Result> => {
    const fails = pattern.test(query);
    if (fails && when === 'before') throw new Error('killed');
    const result = await send();
    if (fails) throw new Error('killed');
    return result;
  };
  failing.command = (params) => orFail(params.query, () => store.command(params));
  failing.exec = (params: Parameters<Store['exec']>[0]) => orFail(params.query, () => store.exec(params));
  return failing;
}

/** What taking a load back does, in this order. */
export const unloadSteps = [
  /INSERT INTO withdrawn_chunks/,
  /ALTER TABLE load_chunks UPDATE/,
  /ALTER TABLE events DELETE/,
  /ALTER TABLE chunk_days DELETE/,
  /EXCHANGE TABLES .* AND campaigns_date$/,
  /INSERT INTO loads \(\* EXCEPT/,
] as const;
