import type { DateRange } from './days.ts';

/** What a request asks for beside its days. A field that asks for nothing else than without it is absent. */
export interface ReportOptions {
  /** By field: rows have one of the values of each. */
  readonly filters?: Readonly<Record<string, readonly string[]>>;
  /** The figures of a row, in this order. */
  readonly metrics?: readonly string[];
  /** Ties go by the grouping keys. */
  readonly order_by?: readonly Order[];
  readonly limit?: number;
  readonly totals?: true;
  /** Rows have the ids behind their names, too. */
  readonly ids?: true;
  /** ISO weeks, calendar months. */
  readonly time_grain?: 'week' | 'month';
  /** Microseconds since 1970: only the rows of days that changed later. */
  readonly changed_since?: string;
  /** `closed`, or the revision of a close: the rows as they were then. */
  readonly as_of?: string;
  /** Microseconds since 1970: the rows as a report had them then. */
  readonly moment?: string;
  /** Rows are what is left of those of today when those of the close are taken away. */
  readonly adjustments?: true;
  /** Each row of adjustments is split by the loads that it came by. */
  readonly by_load?: true;
  /** The days that each figure is compared with. */
  readonly compare_to?: DateRange;
}

export interface Order {
  readonly field: string;
  readonly direction: 'asc' | 'desc';
}
