import {
  addDays,
  type DateRange,
  daysBetween,
  daysIn,
  type PeriodBefore,
  periodNames,
  periodsBefore,
} from '../../report/days.ts';
import { dimensionsOf, families, idsOf, mainMetric, metricsOf, textFields } from './fields.ts';
import { isDay, isPreset, type Preset, presets } from './ranges.ts';

export const grains = ['total', 'day', 'week', 'month'] as const;
export type Grain = (typeof grains)[number];

export const comparisons = ['none', ...periodNames] as const;
export type Comparison = 'none' | PeriodBefore;

/** All that a person has chosen; the address of the page holds it, and nothing else. */
export interface State {
  readonly family: string;
  /** Beside the campaign or ad unit. */
  readonly dimensions: readonly string[];
  readonly grain: Grain;
  readonly range: Preset | DateRange;
  readonly compare: Comparison | DateRange;
  /** As the months were closed, instead of today. */
  readonly closed: boolean;
  /** By text field: the values to keep. */
  readonly filters: Readonly<Record<string, readonly string[]>>;
  /** Figures shown, in their order. */
  readonly metrics: readonly string[];
  readonly chart: string;
  /** The chart has what changed most, where days are compared. */
  readonly changes: boolean;
  readonly sort?: { readonly column: string; readonly descending: boolean };
  readonly find: string;
}

/** Changes what is chosen. */
export type Choose = (change: Partial<State>) => void;

export function initialState(family: string): State {
  return {
    family,
    dimensions: [],
    grain: 'day',
    range: 'last_28_days',
    compare: 'none',
    closed: false,
    filters: {},
    metrics: metricsOf(family).map(({ id }) => id),
    chart: mainMetric(family),
    changes: false,
    find: '',
  };
}

/** The other report with as much of the choice as it has, too. */
export function ofFamily(state: State, family: string): State {
  if (family === state.family) return state;
  const { grain, range, compare, closed } = state;
  const dimensions = state.dimensions.filter((name) => dimensionsOf(family).includes(name));
  const { device } = state.filters;
  const kept = { dimensions, grain, range, compare, closed };
  return { ...initialState(family), ...kept, filters: device ? { device } : {} };
}

/** The same choice for another account, which has other names and closes its own months. */
export const ofOtherAccount = (state: State): State => ({ ...state, filters: {}, find: '', closed: false });

/**
 * The columns that the table can have: days first, then what the row is of, then the figures in the order chosen. An id is only
 * there where names do not tell rows apart.
 */
export function columnsOf({ family, dimensions, grain, metrics, compare }: State): string[] {
  const days = grain === 'total' ? [] : grain === 'day' ? ['start_time'] : ['start_time', 'end_time'];
  const ids = idsOf(family);
  const names = textFields(family, dimensions).flatMap((name) => [name, ids.get(name) ?? []].flat());
  const figures = metrics.flatMap((metric) =>
    compare === 'none' ? [metric] : [metric, `${metric}_compared`, `${metric}_change`],
  );
  return [...days, ...names, ...figures];
}

/** The state with figures that are shown in the chart, and without an order by a column that the table does not have. */
export function ofShown({ sort, ...state }: State): State {
  const { metrics, chart } = state;
  return {
    ...state,
    chart: metrics.includes(chart) ? chart : (metrics[0] ?? chart),
    ...(sort && columnsOf(state).includes(sort.column) && { sort }),
  };
}

export function daysOf({ range }: State, today: string): DateRange {
  return typeof range === 'string' ? presets[range](today) : range;
}

/** The days that figures are compared with, as the service chooses them where they have a name. */
export function comparedDaysOf(state: State, today: string): DateRange | undefined {
  const { compare } = state;
  if (typeof compare === 'object') {
    return state.grain === 'total' ? compare : daysFrom(compare.start, state, today);
  }
  return compare === 'none' ? undefined : periodsBefore[compare](daysOf(state, today));
}

/** The days that those of a row are compared with, as far as there are such days. */
export function comparedDaysOfRow(row: DateRange, state: State, today: string): DateRange | undefined {
  const compared = comparedDaysOf(state, today);
  if (!compared || state.grain === 'total') return compared;
  const earlier = -daysBetween(compared.start, daysOf(state, today).start);
  const [start, end] = [addDays(row.start, earlier), addDays(row.end, earlier)];
  return start <= compared.end ? { start, end: end < compared.end ? end : compared.end } : undefined;
}

/** Whether the chart has what changed most. */
export const ranksChanges = ({ changes, compare }: State): boolean => changes && compare !== 'none';

/** As many days as the report has. */
export function daysFrom(start: string, state: State, today: string): DateRange {
  return { start, end: addDays(start, daysIn(daysOf(state, today)) - 1) };
}

/** Whether the last day of which something was counted is the last one that there is data of. */
export function reachesNow(state: State, today: string): boolean {
  const isWhole = state.grain === 'day' && Object.keys(state.filters).length === 0;
  return isWhole && daysOf(state, today).end >= presets.yesterday(today).end;
}

/** The state as the part of an address behind `#`; what is as at the start is left out. */
export function toHash(state: State): string {
  const usual = fieldsOf(initialState(state.family));
  const fields = new URLSearchParams({ report: state.family });
  for (const [name, value] of fieldsOf(state)) {
    if (value !== usual.get(name)) fields.append(name, value);
  }
  return `#${fields}`;
}

function fieldsOf(state: State): URLSearchParams {
  const { family, dimensions, grain, range, compare, closed, metrics, chart, changes, sort, find } = state;
  return new URLSearchParams([
    ['report', family],
    ['by', dimensions.join(',')],
    ['each', grain],
    ['days', daysField(range)],
    ['compare', daysField(compare)],
    ['figures', closed ? 'closed' : ''],
    ...Object.entries(state.filters).flatMap(([field, values]) =>
      values.map((value) => [`only.${field}`, value]),
    ),
    ['show', metrics.join(',')],
    ['chart', chart],
    ['see', changes ? 'changes' : ''],
    ['sort', sort ? `${sort.descending ? '-' : ''}${sort.column}` : ''],
    ['find', find],
  ]);
}

const daysField = (days: string | DateRange): string =>
  typeof days === 'string' ? days : `${days.start}/${days.end}`;

/** The parts of an address that the state does not have: mistyped ones, and those that it cannot have. */
export function unreadIn(hash: string, state: State): string[] {
  const read = fieldsOf(state);
  const parts = (text: string) => text.split(',');
  return [...new URLSearchParams(hash.replace(/^#/, ''))]
    .filter(([name, value]) => {
      const known = read.getAll(name).flatMap(parts);
      return name !== 'token' && !parts(value).every((part) => known.includes(part));
    })
    .map(([name, value]) => `${name}=${value}`);
}

/** The state that an address holds; what cannot be read is as at the start. */
export function fromHash(hash: string, family: string): State {
  const fields = new URLSearchParams(hash.replace(/^#/, ''));
  const named = fields.get('report') ?? '';
  const initial = initialState(families.includes(named) ? named : family);
  const list = (name: string) => (fields.get(name) ?? '').split(',').filter(Boolean);
  const metrics = metricsOf(initial.family).map(({ id }) => id);
  const shown = list('show').filter((id, n, all) => metrics.includes(id) && all.indexOf(id) === n);
  const [, sign = '', column = ''] = /^(-?)(\w+)$/.exec(fields.get('sort') ?? '') ?? [];
  return ofShown({
    ...initial,
    dimensions: dimensionsOf(initial.family).filter((name) => list('by').includes(name)),
    grain: grains.find((grain) => grain === fields.get('each')) ?? initial.grain,
    range: rangeOf(fields.get('days') ?? '') ?? initial.range,
    compare:
      comparisons.find((name) => name === fields.get('compare')) ??
      twoDays(fields.get('compare') ?? '') ??
      initial.compare,
    closed: fields.get('figures') === 'closed',
    filters: filtersOf(fields, initial.family),
    metrics: shown.length ? shown : initial.metrics,
    chart: fields.get('chart') ?? initial.chart,
    changes: fields.get('see') === 'changes',
    ...(column && { sort: { column, descending: sign === '-' } }),
    find: fields.get('find') ?? '',
  });
}

function rangeOf(text: string): State['range'] | undefined {
  return isPreset(text) ? text : twoDays(text);
}

function twoDays(text: string): DateRange | undefined {
  const [start = '', end = ''] = text.split('/');
  return isDay(start) && isDay(end) && start <= end ? { start, end } : undefined;
}

function filtersOf(fields: URLSearchParams, family: string): State['filters'] {
  const known = textFields(family, dimensionsOf(family));
  return Object.fromEntries(
    known.flatMap((field) => {
      const values = [...new Set(fields.getAll(`only.${field}`))];
      return values.length ? [[field, values]] : [];
    }),
  );
}

/** Largest first for the first click, then smallest first, then the order of the service again. */
export function nextSort(sort: State['sort'], column: string): State['sort'] {
  if (sort?.column !== column) return { column, descending: true };
  return sort.descending ? { column, descending: false } : undefined;
}
