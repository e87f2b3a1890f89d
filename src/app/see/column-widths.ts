export interface MeasuredColumn {
  readonly id: string;
  readonly isText: boolean;
  /** For its head, px. */
  readonly head: number;
  /** For its head and its longest cell, px. */
  readonly needed: number;
}

export interface TableRoom {
  /** Width of the table and what a cell has beside its text, px. */
  readonly room: number;
  readonly padding: number;
  /** As the reader has drawn columns. */
  readonly own: Readonly<Record<string, number>>;
}

export interface ColumnWidths {
  /** The columns in sight all the time, or where there is no room for them, one that has them below each other. */
  readonly names: string[][];
  /** Of the names, then of each figure, px. */
  readonly widths: readonly number[];
}

export const leastWidth = 76;
/** Of texts; a number is as wide as it is. */
const mostWidth = 320;
const mostStretch = 1.6;
/** A day: of what says what a row is, however little room its figures leave. */
const leastNameText = 84;

/** Wide enough for every cell, and for the whole width where there is room; then they stay, so that nothing jumps. */
export function columnWidths(
  columns: readonly MeasuredColumn[],
  { room, padding, own }: TableRoom,
): ColumnWidths {
  const wanted = ({ isText, needed }: MeasuredColumn) => (isText ? Math.min(mostWidth, needed) : needed);
  const stretch = Math.min(mostStretch, Math.max(1, room / sum(columns.map(wanted))));
  // A whole figure stands beside the names, whichever one scrolls to; one for which a phone is too narrow is shortened.
  const leastForNames = Math.max(
    leastNameText + padding,
    ...columns.filter(({ isText }) => isText).map(({ head }) => head),
  );
  const mostFigure = Math.max(leastWidth, room - leastForNames - 1);
  const given = (column: MeasuredColumn) =>
    Math.min(own[column.id] ?? Math.floor(wanted(column) * stretch), column.isText ? room : mostFigure);
  const named = columns.filter(({ isText }) => isText).map((column) => ({ ...column, given: given(column) }));
  const figures = columns.filter(({ isText }) => !isText).map(given);
  const forNames = Math.max(leastForNames, room - Math.max(0, ...figures) - 1);
  const least = named.map(({ id, head, needed, given }) => (isDay(id) ? needed : Math.min(head, given)));
  const fits = sum(least) <= forNames;
  const spare = Math.max(0, sum(named.map(({ given }) => given)) - forNames);
  const loose = sum(named.map(({ given }, n) => given - (least[n] ?? 0))) || 1;
  const ofNames = fits
    ? named.map(({ given }, n) => Math.floor(given - (spare * (given - (least[n] ?? 0))) / loose))
    : [Math.min(forNames, Math.max(...named.map(({ given }) => given)))];
  const ids = named.map(({ id }) => id);
  return {
    names: fits || ids.length < 2 ? ids.map((id) => [id]) : [ids],
    widths: [...ofNames, ...figures],
  };
}

const sum = (widths: readonly number[]) => widths.reduce((all, width) => all + width, 0);
const isDay = (id: string) => id === 'start_time' || id === 'end_time';
