import { type Breakdown, dimensionOf, familyOf } from '../../catalog/breakdowns.ts';
import type { Catalog, Dimension, DimensionColumn } from '../../catalog/catalog.ts';

/** What a filter compares: a text of the rows, or the id behind it. */
export interface FilterField {
  readonly id: string;
  /** Of the catalog. */
  readonly dimensionName: string;
  readonly dimension: Dimension;
  /** Absent: the id itself. */
  readonly column?: DimensionColumn;
}

/** Everything the rows of a family can be filtered by: each text that a row of it can have, and the ids. */
export function filterFields(catalog: Catalog, familyName: string): FilterField[] {
  const { entity, dimensions } = familyOf(catalog, familyName);
  return [entity, ...dimensions].flatMap((dimensionName) => {
    const dimension = dimensionOf(catalog, dimensionName);
    const texts = dimension.columns
      .filter(({ name }) => name)
      .map((column): FilterField => ({ id: column.id, dimensionName, dimension, column }));
    return [...texts, { id: dimension.key, dimensionName, dimension }];
  });
}

/** The dimensions of the coarsest rollup that has what the breakdown groups by and what the filters compare. */
export function dimensionsRead(
  catalog: Catalog,
  { family, dimensions }: Breakdown,
  filters: Readonly<Record<string, unknown>>,
): readonly string[] {
  const filtered = filterFields(catalog, family).filter(({ id }) => id in filters);
  return familyOf(catalog, family).dimensions.filter(
    (name) => dimensions.includes(name) || filtered.some(({ dimensionName }) => dimensionName === name),
  );
}

export const comparedId = (metric: string): string => `${metric}_compared`;
export const changeId = (metric: string): string => `${metric}_change`;
/** The figures that a comparison adds. */
export const comparisonsOf = (metrics: readonly string[]): string[] =>
  metrics.flatMap((metric) => [comparedId(metric), changeId(metric)]);
