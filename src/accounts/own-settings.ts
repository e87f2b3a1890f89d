import { type Store, select } from '../../clickhouse/client.ts';
import { everyCopyOf, insertTargetOnAllNodes } from '../../clickhouse/cluster/on-nodes.ts';
import { digestOf, type Versioned, versionAfter } from './versions.ts';

/** An account that has a setting of its own, or had one. */
export interface OwnSetting<Value> extends Versioned {
  readonly account: string;
  /** null: it has none any more. */
  readonly value: Value | null;
}

/** A setting that accounts may have, a table each. */
class OwnSettings<Value extends string | number> {
  readonly #table: string;
  readonly #column: string;
  /** Of ClickHouse. */
  readonly #type: string;

  constructor(table: string, column: string, type: string) {
    this.#table = table;
    this.#column = column;
    this.#type = `Nullable(${type})`;
  }

  /** Sets it for an account, or takes it away. @throws when ClickHouse has another value afterwards */
  async set(store: Store, account: string, value: Value | null): Promise<void> {
    const target = await insertTargetOnAllNodes(store, this.#table);
    const copies = await everyCopyOf(store, this.#table);
    const query_params = { account, value };
    await store.command({
      query: `INSERT INTO ${target} (account_id, ${this.#column}, version)
              SELECT {account:String}, {value:${this.#type}}, ${versionAfter('max(s.version)')}
              FROM ${copies} AS s WHERE s.account_id = {account:String}`,
      query_params,
    });
    const [other] = await select(
      store,
      `SELECT 1 FROM ${copies} FINAL
       WHERE account_id = {account:String} AND ${this.#column} IS DISTINCT FROM {value:${this.#type}} LIMIT 1`,
      query_params,
    );
    if (other)
      throw new Error(`what is set for ${account} was not changed, or was changed again; repeat the command`);
  }

  /** All that were ever set, by account; with `since`, those of that version or a later one. */
  async list(
    store: Store,
    { since = '1970-01-01 00:00:00' }: { since?: string | undefined } = {},
  ): Promise<OwnSetting<Value>[]> {
    return select(
      store,
      `SELECT account_id AS account, ${this.#column} AS value, toString(s.version) AS version,
              ${digestOf('s.account_id, s.version')} AS digest
       FROM ${this.#table} AS s FINAL
       WHERE s.version >= toDateTime64({since:String}, 6, 'UTC') ORDER BY account_id`,
      { since },
    );
  }
}

/** How many requests an account may send in a window, where it is not the same as for all. */
export const requestLimits = new OwnSettings<number>('account_limits', 'requests', 'UInt32');

/** The currency that an account's money is in, a code of ISO 4217; nothing is converted. */
export const currencies = new OwnSettings<string>('account_currencies', 'currency', 'String');
