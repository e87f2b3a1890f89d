import type { LosslessNumber } from 'lossless-json';
import {
  adUnitFigures,
  type Counted,
  campaignFigures,
  compareKeys,
  decimal,
  groupings,
  type Key,
  micros,
  type Oracle,
  type Range,
  type Row,
} from './oracle.ts';

/** The optional fields of a body, as a caller writes them. */
export interface Asked {
  filters?: Record<string, string[]>;
  metrics?: string[];
  order_by?: { field: string; direction?: 'asc' | 'desc' }[];
  limit?: number;
  totals?: boolean;
  ids?: boolean;
  time_grain?: 'day' | 'week' | 'month';
  compare_to?:
    | 'previous_period'
    | 'previous_weeks'
    | 'previous_month'
    | 'previous_year'
    | { start_time: string; end_time: string };
}

/** What the envelope has beside what every envelope has. */
export interface AskedRecount {
  readonly rows: Row[];
  readonly totals?: Row;
  readonly row_count?: number;
  readonly compare_to?: { start_time: string; end_time: string };
}

interface Group {
  readonly keys: Readonly<Record<Key, string>>;
  readonly now: Counted[];
  readonly before: Counted[];
}

const dayMs = 86_400_000;
const shifted = (day: string, days: number) =>
  new Date(Date.parse(day) + days * dayMs).toISOString().slice(0, 10);
const daysFrom = (first: string, second: string) => (Date.parse(second) - Date.parse(first)) / dayMs;

/** Recounts a report with optional fields, event by event. */
export function recountAsked(
  oracle: Oracle,
  path: string,
  account: string,
  range: Range,
  asked: Asked,
): AskedRecount {
  const keys = groupings[path] ?? [];
  const compared = otherDays(range, asked.compare_to);
  const groups = new Map<string, Group>();
  const all = { now: [] as Counted[], before: [] as Counted[] };
  const add = (counted: Counted, day: string, side: 'now' | 'before') => {
    const of = { ...counted.keys, day: firstDayOf(day, asked.time_grain) };
    const id = JSON.stringify(keys.map((key) => of[key]));
    const group = groups.get(id) ?? { keys: of, now: [], before: [] };
    groups.set(id, group);
    group[side].push(counted);
    all[side].push(counted);
  };
  for (const counted of oracle.counted(path, account)) {
    if (!passes(oracle, account, counted, asked.filters ?? {})) continue;
    const { day } = counted.keys;
    if (range.start <= day && day <= range.end) add(counted, day, 'now');
    if (compared && compared.start <= day && day <= compared.end) {
      add(counted, shifted(day, daysFrom(compared.start, range.start)), 'before');
    }
  }
  const rows = [...groups.values()]
    .sort((a, b) => compareKeys(keys, a, b))
    .map((group) => ({
      ...dates(keys, group, range, asked.time_grain),
      ...texts(oracle, path, account, keys, group, asked.ids === true),
      ...figures(path, group, compared !== undefined),
    }));
  const ordered = inOrder(rows, asked.order_by ?? []);
  const shown = ordered.slice(0, asked.limit).map(({ start_time = '', end_time = '', ...row }): Row => {
    const kept = Object.entries(row).filter(([field]) => isShown(path, asked, field));
    return { start_time, end_time, ...inChosenOrder(Object.fromEntries(kept), asked) };
  });
  const sums = figures(path, all, compared !== undefined);
  const shownSums = Object.fromEntries(Object.entries(sums).filter(([field]) => isShown(path, asked, field)));
  return {
    rows: shown,
    ...(asked.totals && { totals: inChosenOrder(shownSums, asked) }),
    ...(asked.limit !== undefined && { row_count: rows.length }),
    ...(compared && { compare_to: { start_time: compared.start, end_time: compared.end } }),
  };
}

function otherDays({ start, end }: Range, asked: Asked['compare_to']): Range | undefined {
  if (asked === undefined) return undefined;
  if (typeof asked === 'object') return { start: asked.start_time, end: asked.end_time };
  const length = daysFrom(start, end);
  if (asked === 'previous_period') return { start: shifted(start, -length - 1), end: shifted(start, -1) };
  if (asked === 'previous_weeks') {
    const days = length + 1 + ((7 - ((length + 1) % 7)) % 7);
    return { start: shifted(start, -days), end: shifted(end, -days) };
  }
  const months = asked === 'previous_month' ? 1 : 12;
  const before = (day: string) => {
    const [year = 0, month = 0, date = 0] = day.split('-').map(Number);
    const last = new Date(Date.UTC(year, month - months, 0));
    last.setUTCDate(Math.min(date, last.getUTCDate()));
    return last.toISOString().slice(0, 10);
  };
  const ends = [shifted(before(start), length), before(end)].sort();
  return { start: before(start), end: ends[0] ?? '' };
}

/** Of the week, from Monday, or of the month. */
function firstDayOf(day: string, grain: Asked['time_grain']): string {
  if (grain === 'month') return `${day.slice(0, 7)}-01`;
  if (grain !== 'week') return day;
  return shifted(day, -((new Date(day).getUTCDay() + 6) % 7));
}

function dates(
  keys: readonly Key[],
  { keys: { day } }: Group,
  { start, end }: Range,
  grain: Asked['time_grain'],
): Row {
  if (!keys.includes('day')) return { start_time: start, end_time: end };
  let last = day;
  if (grain === 'week') last = shifted(day, 6);
  while (grain === 'month' && shifted(last, 1).slice(0, 7) === day.slice(0, 7)) last = shifted(last, 1);
  const cut = grain === 'week' || grain === 'month';
  return {
    start_time: cut && day < start ? start : day,
    end_time: cut && last > end ? end : last,
  };
}

/** The texts that tell a row from others. */
function texts(
  oracle: Oracle,
  path: string,
  account: string,
  keys: readonly Key[],
  { keys: of }: Group,
  ids: boolean,
): Row {
  const shown = textsOf(oracle, account, of);
  const some = (...fields: string[]) =>
    Object.fromEntries(fields.map((field) => [field, shown[field] ?? '']));
  const named = (name: string) => some(name, ...(ids ? [`${name}_id`] : []));
  return {
    ...named(path.startsWith('/v1/campaigns') ? 'campaign' : 'ad_unit'),
    ...(keys.includes('device') && some('device')),
    ...(keys.includes('creative') && some('creative_headline', 'creative_id')),
    ...(keys.includes('site') && named('site')),
  };
}

function textsOf(oracle: Oracle, account: string, keys: Counted['keys']): Record<string, string> {
  return {
    campaign: oracle.nameOf('campaigns', account, keys.campaign, keys.campaign),
    campaign_id: keys.campaign,
    ad_unit: oracle.nameOf('ad_units', account, keys.ad_unit, keys.ad_unit),
    ad_unit_id: keys.ad_unit,
    device: keys.device,
    creative_headline: oracle.nameOf('creatives', account, keys.creative, ''),
    creative_id: keys.creative,
    site: oracle.nameOf('sites', account, keys.site, keys.site),
    site_id: keys.site,
  };
}

function passes(
  oracle: Oracle,
  account: string,
  { keys }: Counted,
  filters: Record<string, string[]>,
): boolean {
  const texts = textsOf(oracle, account, keys);
  return Object.entries(filters).every(([field, values]) => values.includes(texts[field] ?? 'no such field'));
}

function figures(path: string, { now, before }: Omit<Group, 'keys'>, compares: boolean): Row {
  const count = path.startsWith('/v1/campaigns') ? campaignFigures : adUnitFigures;
  const [current, other] = [now, before].map((some) => count(some.map(({ event }) => event)));
  return Object.fromEntries(
    Object.entries(current ?? {}).flatMap(([field, value]) => {
      if (!compares) return [[field, value]];
      const compared = other?.[field] ?? '';
      return [
        [field, value],
        [`${field}_compared`, compared],
        [`${field}_change`, decimal(amountOf(value) - amountOf(compared))],
      ];
    }),
  );
}

const amountOf = (value: string | LosslessNumber): bigint => micros(`${value}`);

function isShown(path: string, { metrics }: Asked, field: string): boolean {
  const figure = field.replace(/_(compared|change)$/, '');
  const all = Object.keys((path.startsWith('/v1/campaigns') ? campaignFigures : adUnitFigures)([]));
  return !metrics || !all.includes(figure) || metrics.includes(figure);
}

/** Figures in the order in which they were chosen, after everything else. */
function inChosenOrder(row: Row, { metrics = [] }: Asked): Row {
  const place = (field: string) => metrics.indexOf(field.replace(/_(compared|change)$/, ''));
  return Object.fromEntries(Object.entries(row).sort(([a], [b]) => place(a) - place(b)));
}

/** Rows that are equal in these fields stay as they are. */
function inOrder(rows: readonly Row[], order: NonNullable<Asked['order_by']>): Row[] {
  return rows.toSorted((a, b) => {
    for (const { field, direction } of order) {
      const found = compareValues(a[field], b[field]);
      if (found !== 0) return direction === 'desc' ? -found : found;
    }
    return 0;
  });
}

function compareValues(a: Row[string] | undefined, b: Row[string] | undefined): number {
  if (typeof a === 'string' && typeof b === 'string') return Buffer.compare(Buffer.from(a), Buffer.from(b));
  const change = amountOf(a ?? '') - amountOf(b ?? '');
  return change < 0n ? -1 : change > 0n ? 1 : 0;
}
