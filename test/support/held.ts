import { Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import type { Store } from '../../clickhouse/client.ts';

/** What gives a signal, and what waits for it. */
export function signal(): [give: () => void, given: Promise<void>] {
  let give = (): void => undefined;
  const given = new Promise<void>((resolve) => {
    give = resolve;
  });
  return [() => give(), given];
}

export interface Held {
  /** The store, but statements that match, or whose parameters or values do, wait for the release. */
  readonly store: Store;
  /** Resolves when the first of them has come. */
  readonly reached: Promise<void>;
  release(): void;
}

/** Holds open the gap before a statement, to let others into it. */
export function heldAt(store: Store, pattern: RegExp): Held {
  const [release, released] = signal();
  const [come, reached] = signal();
  const wait = async (
    { query, query_params = {} }: { query: string; query_params?: object },
    values?: Buffer,
  ) => {
    const texts = [query, JSON.stringify(query_params), `${values ?? ''}`];
    if (!texts.some((text) => pattern.test(text))) return;
    come();
    await released;
  };
  const held: Store = Object.create(store);
  held.command = async (params) => {
    await wait(params);
    return store.command(params);
  };
  held.exec = async (params: Parameters<Store['exec']>[0]) => {
    if (!('values' in params)) {
      await wait(params);
      return store.exec(params);
    }
    const values = await buffer(params.values);
    await wait(params, values);
    return store.exec({ ...params, values: Readable.from([values], { objectMode: false }) });
  };
  held.query = async (params: Parameters<Store['query']>[0]) => {
    await wait(params);
    return store.query(params);
  };
  return { store: held, reached, release };
}
