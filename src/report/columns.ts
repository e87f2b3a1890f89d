import { type Breakdown, dimensionOf, familyOf } from '../../catalog/breakdowns.ts';
import type { Catalog, ColumnType, Dimension, DimensionColumn } from '../../catalog/catalog.ts';

/** One field of a row, in the order of the row, and where its value comes from. */
export interface RowColumn {
  readonly id: string;
  readonly type: ColumnType;
  readonly source:
    | { readonly kind: 'range' }
    | { readonly kind: 'dimension'; readonly dimension: Dimension; readonly column: DimensionColumn }
    | { readonly kind: 'measure' }
    | {
        readonly kind: 'ratio';
        readonly numerator: string;
        readonly denominator: string;
        readonly times: number;
      };
}

/** The grouping dimensions of a breakdown, entity first. The day, where there is one, comes before them. */
export function groupingDimensions(catalog: Catalog, breakdown: Breakdown): Dimension[] {
  const { entity } = familyOf(catalog, breakdown.family);
  return [entity, ...breakdown.dimensions].map((name) => dimensionOf(catalog, name));
}

/** Row fields of a breakdown: the range, the entity, what the breakdown adds, then the family's columns. */
export function rowColumns(catalog: Catalog, breakdown: Breakdown): RowColumn[] {
  const family = familyOf(catalog, breakdown.family);
  const range = ['start_time', 'end_time'].map(
    (id): RowColumn => ({ id, type: 'Date', source: { kind: 'range' } }),
  );
  const dimensions = groupingDimensions(catalog, breakdown).flatMap((dimension) =>
    dimension.columns.map(
      (column): RowColumn => ({
        id: column.id,
        type: 'String',
        source: { kind: 'dimension', dimension, column },
      }),
    ),
  );
  const figures = family.columns.map((id): RowColumn => {
    const measure = family.measures[id];
    if (measure) return { id, type: measure.type, source: { kind: 'measure' } };
    const ratio = family.ratios[id];
    if (ratio) return { id, type: ratio.type, source: { kind: 'ratio', ...ratio } };
    throw new Error(`the catalog lists column ${id} of ${breakdown.family} but does not define it`);
  });
  return [...range, ...dimensions, ...figures];
}
