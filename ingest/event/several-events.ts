import type { EventField } from '../../catalog/events.ts';
import type { ColumnText, Condition } from './expressions.ts';
import { firstOf } from './sql.ts';
import type { Rule } from './values.ts';

/** The number of an event in its record, from 1. */
export const eventNumber = 'nth_event';

/** Where the fields of an event are in a record. */
export interface EventMapping {
  /** Names of the columns that fields and the condition are read from, each once. */
  readonly columns: readonly string[];
  /** The text of a field, of type String; undefined where nothing gives it. */
  readonly textOf: (field: EventField, columnText: ColumnText) => string | undefined;
  /**
   * The columns that a field is read from as they are; none for a constant, an expression or nothing. Where the events of a
   * record do not all read the same one, each has `when`: SQL of which event it is.
   */
  readonly columnsOf: (field: EventField) => readonly { readonly column: string; readonly when?: string }[];
  /** What must hold for the expression of a field to have a result; of computed columns. */
  readonly rulesOf: (field: EventField) => readonly Rule[];
  /** Absent: every record is to be an event. */
  readonly condition?: Condition;
}

/** Each row of a SELECT as often as a record is events, with their number. */
export function numberedEvents(select: string, events: number): string {
  return `SELECT *, arrayJoin(range(1, ${events + 1})) AS ${eventNumber} FROM (${select})`;
}

/** The mappings of several events as one, of rows that are numbered. */
export function severalEvents(events: readonly EventMapping[]): EventMapping & { readonly events: number } {
  const isEvent = (n: number) => `${eventNumber} = ${n + 1}`;
  const choose = (values: readonly string[]) =>
    new Set(values).size === 1
      ? (values[0] ?? '')
      : firstOf(
          values.slice(0, -1).map((value, n) => [isEvent(n), value]),
          values.at(-1) ?? '',
        );
  /** A rule that several events have is one, so that there are few. */
  const rules = (of: (event: EventMapping) => readonly Rule[]): Rule[] => {
    const broken = new Map<string, string[]>();
    for (const [n, event] of events.entries()) {
      for (const rule of of(event)) {
        broken.set(rule.reason, [...(broken.get(rule.reason) ?? []), `${isEvent(n)} AND (${rule.broken})`]);
      }
    }
    return [...broken].map(([reason, each]) => ({
      reason,
      broken: each.map((one) => `(${one})`).join(' OR '),
    }));
  };
  return {
    events: events.length,
    columns: [...new Set(events.flatMap(({ columns }) => columns))],
    columnsOf: (field) => {
      const all = events.map((event) => event.columnsOf(field));
      const [first = []] = all;
      if (all.every(([each]) => each?.column === first[0]?.column)) return first;
      return all.flatMap((columns, n) => columns.map(({ column }) => ({ column, when: isEvent(n) })));
    },
    textOf: (field, columnText) => {
      const texts = events.map((event) => event.textOf(field, columnText));
      return texts.every((text) => text === undefined)
        ? undefined
        : choose(texts.map((text) => text ?? "''"));
    },
    rulesOf: (field) => rules((event) => event.rulesOf(field)),
    ...(events.some(({ condition }) => condition) && {
      condition: {
        holds: `(${choose(events.map(({ condition }) => condition?.holds ?? 'true'))})`,
        rules: rules(({ condition }) => condition?.rules ?? []),
        columns: events.flatMap(({ condition }) => condition?.columns ?? []),
      },
    }),
  };
}
