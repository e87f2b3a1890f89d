import type { ClickHouseSettings } from '@clickhouse/client';
import type { LoadVersion, Tables } from './tables.ts';

export interface Asked {
  readonly query: string;
  readonly params: Readonly<Record<string, unknown>>;
}

export interface Statement extends Asked {
  readonly settings: ClickHouseSettings;
  /** What came behind the statement. */
  readonly data: Buffer;
}

/** Rows, or why there are none. */
export type Answer = readonly object[] | Error;

/** An insert that is stored part by part. */
export interface Work {
  readonly loads: readonly string[];
  readonly token: string;
  readonly end: (how: 'killed' | 'engine died') => void;
}

/** What statements read and change. */
export interface State {
  readonly tables: Tables;
  readonly atWork: readonly Work[];
  /** Microseconds. */
  readonly clock: number;
  readonly latestLoads: () => readonly LoadVersion[];
  readonly whereOf: (
    id: string,
    recorded: Pick<LoadVersion, 'host' | 'pid'>,
  ) => { readonly host: string; readonly pid: number };
}
