import { familyOf } from '../../../catalog/breakdowns.ts';
import { catalog } from '../../../catalog/catalog.ts';
import { el, named } from '../parts/dom.ts';
import { head, number, numberHead, table } from '../parts/table.ts';
import { asked } from '../rows/asked.ts';
import type { Rows } from '../rows/client.ts';
import { keysOf, partOf, textFields } from '../state/fields.ts';
import type { Clock, Opened } from '../state/session.ts';
import { comparedDaysOfRow, type State } from '../state/state.ts';
import { figureLabel } from '../words/labels.ts';
import { locale, momentText, rangeText } from '../words/locale.ts';
import { text } from '../words/text.ts';
import { answerDialog } from './answer-dialog.ts';

/** As the service writes it; figures as text, so that no digit is lost. */
interface Part {
  readonly kind: keyof typeof text.explained.kinds;
  readonly load: string | null;
  readonly corrects: string | null;
  readonly reason: string | null;
  readonly first_day: string;
  readonly last_day: string;
  readonly loaded_at: string;
  readonly unconfirmed: boolean;
  readonly confirmed_at: string | null;
  readonly [figure: string]: string | boolean | null;
}

interface Explanation {
  readonly row: Readonly<Record<string, string>>;
  readonly parts: readonly Part[];
}

const digits = new Intl.NumberFormat(locale, { maximumFractionDigits: 6 });

/** Shows which loads a row of the table is the sum of. */
export function explainedDialog(rows: Rows, session: Opened) {
  const { element, show: ask } = answerDialog(text.explained.title);
  /**
   * @param row its number in the report, whatever the order of the table
   * @param column of the figure: one of the compared days comes from the loads of those
   * @param currency of its money, where it is known
   */
  const show = async (state: State, row: number, column: string, currency?: string) => {
    const { family, dimensions, filters } = state;
    const texts = await rows.call('texts', row);
    const days = { start: texts.start_time ?? '', end: texts.end_time ?? '' };
    const isCompared = partOf(column).part === 'compared';
    const of = isCompared ? comparedDaysOfRow(days, state, session.today) : days;
    if (!of) return;
    const names = textFields(family, dimensions).flatMap((field) => texts[field] || []);
    const ids = keysOf(family).flatMap((key) => (texts[key] === undefined ? [] : [[key, texts[key]]]));
    const range = { start_time: of.start, end_time: of.end };
    const body = { ...range, filters, row: Object.fromEntries(ids) };
    await ask(
      named([...names, rangeText(of.start, of.end)]),
      asked<Explanation>(`/v1/${family}/explain`, session, body),
      (found) => ['', tableOf(family, found, currency, session.clock)],
    );
  };
  return { element, show };
}

function tableOf(
  family: string,
  { row, parts }: Explanation,
  currency?: string,
  clock?: Clock,
): HTMLTableElement {
  const { title, kinds, corrects, columns, confirmed, unconfirmed } = text.explained;
  const figures = Object.keys(familyOf(catalog, family).measures);
  const shown = (value: unknown) => number(value === null ? '' : digits.format(value as number));
  const cells = (part: Part) => [
    el('th', { scope: 'row' }, kinds[part.kind], part.corrects !== null && ` ${corrects(part.corrects)}`),
    el('td', {}, part.load ?? ''),
    el('td', {}, part.reason !== null && el('bdi', {}, part.reason)),
    el('td', {}, momentText(Date.parse(part.loaded_at), clock)),
    el('td', {}, rangeText(part.first_day, part.last_day)),
    shown(part.events),
    ...figures.map((name) => shown(part[name])),
    el(
      'td',
      {},
      part.unconfirmed
        ? unconfirmed
        : part.confirmed_at !== null && confirmed(momentText(Date.parse(part.confirmed_at), clock)),
    ),
  ];
  const heads = [
    ...columns.map((label, n) => (n === columns.length - 1 ? numberHead : head)(label)),
    ...figures.map((name) => numberHead(figureLabel(family, name, currency))),
    head(text.explained.money),
  ];
  return table({ 'aria-label': title }, [heads], parts.map(cells), [
    el('th', { scope: 'row', colspan: columns.length }, text.table.total),
    ...figures.map((name) => shown(row[name])),
    el('td'),
  ]);
}
