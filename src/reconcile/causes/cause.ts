import type { ReadStatement } from '../../../clickhouse/reader.ts';
import type { Clock } from '../model/clocks.ts';
import type { Model } from '../model/model.ts';
import type { Scale } from '../model/score.ts';
import { type Compared, type Side, sent, statementOf } from '../model/sides.ts';

/** Both sides, as the explanations that were found so far have them. */
export interface State {
  readonly compared: Compared;
  readonly scale: Scale;
  readonly model: Model;
  /** Clocks by which their days may be cut; computed when first asked for. */
  readonly clocks: () => readonly Clock[];
  readonly ours: Side;
  readonly theirs: Side;
}

export type CauseName =
  | 'time_zone'
  | 'missing_day'
  | 'doubled_day'
  | 'other_name'
  | 'missing_load'
  | 'doubled_load'
  | 'corrections'
  | 'late_conversions'
  | 'rounding';

/** What an explanation is about, for those who say it in words of their own; what it is not about is absent. */
export interface About {
  /** The time zone of their days, and others that would fit as well. */
  readonly zone?: string;
  readonly other_zones?: readonly string[];
  /** The time zone of our days. */
  readonly our_zone?: string;
  /** Days that their report lacks, or has twice. */
  readonly days?: readonly string[];
  /** Days that only their report has. */
  readonly their_days?: readonly string[];
  readonly names?: readonly { readonly theirs: string; readonly ours: string }[];
  readonly loads?: readonly string[];
  /** A moment in UTC: what was loaded after it is not in their report. */
  readonly loaded_after?: string;
  readonly figures?: readonly string[];
}

/** An explanation that fits. */
export interface Found {
  readonly cause: CauseName;
  /** In words. */
  readonly what: string;
  readonly about: About;
  /** With it, and with those before it. */
  readonly model: Model;
}

/** Looks for the explanations of one kind. */
export type Cause = (state: State) => Promise<Found | undefined>;

/** The first of a list that may be long. */
export function few(texts: readonly string[], all = texts.length, most = 5): string {
  const shown = texts.slice(0, most);
  return [...shown, ...(all > shown.length ? [`and ${all - shown.length} more`] : [])].join(', ');
}

/** A statement on the tables `ours` and `theirs`. */
export function onBoth(
  { compared, ours, theirs }: State,
  query: string,
  more: Parameters<typeof statementOf>[2] = {},
): ReadStatement {
  return statementOf(compared, query, { ...more, tables: { ours: sent(ours), theirs: sent(theirs) } });
}
