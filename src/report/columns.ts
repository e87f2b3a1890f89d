import { type Breakdown, dimensionOf, familyOf } from '../../catalog/breakdowns.ts';
import type { Catalog, ColumnType, Dimension, DimensionColumn, Family } from '../../catalog/catalog.ts';
import { changeId, comparedId } from './fields.ts';
import type { ReportOptions } from './options.ts';

/** One field of a row, in the order of the row, and where its value comes from. */
export interface RowColumn {
  readonly id: string;
  readonly type: ColumnType;
  readonly source:
    | { readonly kind: 'range' }
    /** What an adjustment came by. */
    | { readonly kind: 'load'; readonly column: (typeof loadColumns)[number] }
    | { readonly kind: 'dimension'; readonly dimension: Dimension; readonly column: DimensionColumn }
    | { readonly kind: 'measure' }
    | ({ readonly kind: 'ratio' } & Omit<Family['ratios'][string], 'type'>)
    /** What is left of the one when the other is taken away. */
    | { readonly kind: 'change'; readonly now: RowColumn; readonly before: RowColumn };
}

/** What tells the rows of split adjustments apart by what they came by: when and how, by which load, and why. */
export const loadColumns = ['changed_at', 'change', 'load', 'reason'] as const;

/** The grouping dimensions of a breakdown, entity first. The day, where there is one, comes before them. */
export function groupingDimensions(catalog: Catalog, breakdown: Breakdown): Dimension[] {
  const { entity } = familyOf(catalog, breakdown.family);
  return [entity, ...breakdown.dimensions].map((name) => dimensionOf(catalog, name));
}

/** The columns of a dimension, with its id behind the name where that is asked for. */
function columnsOf({ key, columns }: Dimension, ids: boolean): readonly DimensionColumn[] {
  return ids && !columns.some(({ id }) => id === key) ? [...columns, { id: key }] : columns;
}

/**
 * Row fields of a breakdown: the range, the entity, what the breakdown adds, `loadColumns` where they are asked for, then the family's
 * columns, or those that were chosen; each followed by its value of the other days and the change, where days are compared.
 */
export function rowColumns(
  catalog: Catalog,
  breakdown: Breakdown,
  {
    metrics,
    compare_to,
    by_load,
    ids = false,
  }: Pick<ReportOptions, 'metrics' | 'compare_to' | 'by_load'> & { ids?: boolean } = {},
): RowColumn[] {
  const family = familyOf(catalog, breakdown.family);
  const range = ['start_time', 'end_time'].map(
    (id): RowColumn => ({ id, type: 'Date', source: { kind: 'range' } }),
  );
  const dimensions = groupingDimensions(catalog, breakdown).flatMap((dimension) =>
    columnsOf(dimension, ids).map(
      (column): RowColumn => ({
        id: column.id,
        type: 'String',
        source: { kind: 'dimension', dimension, column },
      }),
    ),
  );
  const figures = (metrics ?? family.columns).flatMap((id): RowColumn[] => {
    const now = figure(family, id);
    if (!now) throw new Error(`the catalog lists column ${id} of ${breakdown.family} but does not define it`);
    return compare_to ? compared(now) : [now];
  });
  const loads = (by_load ? loadColumns : []).map(
    (id): RowColumn => ({ id, type: 'String', source: { kind: 'load', column: id } }),
  );
  return [...range, ...dimensions, ...loads, ...figures];
}

export function isFigure({ source }: RowColumn): boolean {
  return !['range', 'dimension', 'load'].includes(source.kind);
}

/** Whether it is a whole number: a sum of counts, or the difference of two. */
export function isCount({ type, source }: RowColumn): boolean {
  return source.kind === 'change' ? isCount(source.now) : source.kind === 'measure' && type === 'Numeric';
}

function figure({ measures, ratios }: Family, id: string): RowColumn | undefined {
  const measure = measures[id];
  if (measure) return { id, type: measure.type, source: { kind: 'measure' } };
  const ratio = ratios[id];
  return ratio && { id, type: ratio.type, source: { kind: 'ratio', ...ratio } };
}

function compared(now: RowColumn): RowColumn[] {
  const { id, type, source } = now;
  const before: RowColumn = {
    id: comparedId(id),
    type,
    source:
      source.kind === 'ratio'
        ? {
            ...source,
            numerator: comparedId(source.numerator),
            denominator: comparedId(source.denominator),
          }
        : source,
  };
  return [now, before, { id: changeId(id), type, source: { kind: 'change', now, before } }];
}

/** The measures that a figure is computed from. */
export function measuresOf({ id, source }: RowColumn): string[] {
  switch (source.kind) {
    case 'measure':
      return [id];
    case 'ratio':
      return [source.numerator, source.denominator];
    case 'change':
      return [...measuresOf(source.now), ...measuresOf(source.before)];
    default:
      return [];
  }
}
