import type { ReadStatement } from '../../../clickhouse/reader.ts';
import type { About, CauseName } from '../model/about.ts';
import type { Clock } from '../model/clocks.ts';
import { type Model, modelReading } from '../model/model.ts';
import type { Scale } from '../model/score.ts';
import { type Compared, type Side, sent, statementOf } from '../model/sides.ts';

/** Both sides, as the explanations that were found so far have them. */
export interface State {
  readonly compared: Compared;
  readonly scale: Scale;
  readonly model: Model;
  /** Clocks by which their days may be cut; computed when first asked for. */
  readonly clocks: () => Promise<readonly Clock[]>;
  readonly ours: Side;
  readonly theirs: Side;
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
export function few(texts: readonly string[], all = texts.length): string {
  const shown = texts.slice(0, 5);
  return [...shown, ...(all > shown.length ? [`and ${all - shown.length} more`] : [])].join(', ');
}

/** A statement on the tables `ours` and `theirs`, and on events as the model reads them. */
export function onBoth(
  { compared, model, ours, theirs }: State,
  query: string,
  params: ReadStatement['params'] = {},
): ReadStatement {
  const reading = modelReading(compared, model);
  return statementOf(compared, query, {
    reads: reading.reads,
    params: { ...reading.params, ...params },
    tables: { ours: sent(ours), theirs: sent(theirs) },
  });
}
