import type { DateRange } from '../../report/days.ts';
import type { Key } from '../state/key.ts';
import type { Arrangement } from './arrange.ts';

export type Asked<Result> = { readonly result: Result } | { readonly failure: Failure };

/** Why there is no report, as the page has to know it. */
export interface Failure {
  readonly reason: 'unauthorized' | 'limited' | 'refused' | 'failed' | 'broken' | 'other' | 'unreachable';
  /** In the words of the service. */
  readonly detail?: string;
  readonly requestId?: string;
  /** When to ask again, where the service says so. */
  readonly retrySeconds?: number;
  /** How many rows had come when the transfer broke. */
  readonly rows?: number;
}

/** What a report says beside its rows. */
export interface Facts {
  /** Whose report it is. */
  readonly account: string;
  /** The code of its money, where it is known. */
  readonly currency?: string;
  /** `yyyy-mm-dd hh:mm:ss TZ`, the time of the request where the days are counted. */
  readonly asked: string;
  /** When the last data was loaded, in ms since 1970. */
  readonly loadedAt?: number;
  /** Days whose money may still change: first and last of each run. */
  readonly unconfirmed: readonly (readonly [string, string])[];
  /** The other period, first and last day. */
  readonly comparedTo?: readonly [string, string];
}

export interface ReportRequest {
  readonly url: string;
  readonly key: Key;
  readonly body: unknown;
  readonly family: string;
}

export interface ColumnFacts {
  readonly id: string;
  readonly kind: 'text' | 'number';
  /** The longest of its cells. */
  readonly widest: string;
}

export interface Arranged {
  readonly rows: number;
  /** Whether ids are shown, because names do not tell rows apart. */
  readonly ids: boolean;
  readonly columns: readonly ColumnFacts[];
  /** By column: as text for people, and exact in whole units of 10^-scale. */
  readonly totals: Readonly<Record<string, Total>>;
}

/** A figure for people. */
export interface Said {
  /** For a glance: without the last digits. */
  readonly text: string;
  /** With every digit. */
  readonly whole: string;
}

export interface Total extends Said {
  /** Rounded to four digits with a unit: `1.994bn`. */
  readonly compact: string;
  /** The decimal as the service writes it. */
  readonly exact: string;
  /** Against the compared period; absent without one, where there is nothing to compare with, and of shares. */
  readonly percent?: number;
}

export interface ChartPoint {
  readonly start: string;
  readonly end: string;
  /** What the row is, name by name. */
  readonly labels: readonly string[];
  /** Absent where nothing was counted on these days. */
  readonly now?: Drawn;
  readonly before?: Drawn;
  /** Present where they are ranked by it. `percent` is absent where that of a total is. */
  readonly change?: Drawn & { readonly percent?: number };
}

export interface Drawn extends Said {
  readonly value: number;
}

export interface Slice {
  /** Which rows of the report they are. */
  readonly rows: readonly number[];
  /** By column, then row: what the cells say. */
  readonly cells: readonly (readonly string[])[];
  /** The same with every digit. */
  readonly whole: readonly (readonly string[])[];
  /** By row: whether money of its days may still change. */
  readonly unconfirmed: readonly boolean[];
}

/** Each day, week or month of a range. */
export interface Spans {
  readonly range: DateRange;
  readonly each: 'day' | 'week' | 'month';
}

/** What the page asks of the worker, and what it gets. */
export interface Methods {
  load(request: ReportRequest): Asked<{ rows: number; facts: Facts }> | 'superseded';
  arrange(arrangement: Arrangement): Arranged;
  slice(range: { from: number; to: number; columns: readonly string[] }): Slice;
  /** @param options.show each day, week or month of a range; or the rows with the largest values, or what changed most, so many at most */
  chart(options: { metric: string; show: Spans | 'largest' | 'changes'; most: number }): ChartPoint[];
  /** Days, names and ids of a row, as the service has them. */
  texts(row: number): Readonly<Record<string, string>>;
  /** Of another report than the one shown: one that no filter narrows. */
  values(options: { request: ReportRequest; column: string; find: string; most: number }): Asked<string[]>;
}

export type Call = {
  [M in keyof Methods]: {
    readonly id: number;
    readonly method: M;
    readonly argument: Parameters<Methods[M]>[0];
  };
}[keyof Methods];

export interface Progress {
  readonly rows: number;
  readonly bytes: number;
  readonly columns: readonly ColumnFacts[];
  readonly facts: Facts;
}

export type Message =
  | { readonly id: number; readonly result: unknown }
  | { readonly id: number; readonly error: string }
  /** Of a call of `load`. */
  | { readonly id: number; readonly progress: Progress };
