import { familyOf } from '../../../catalog/breakdowns.ts';
import { catalog } from '../../../catalog/catalog.ts';

/** A figure of a row. */
export interface Metric {
  readonly id: string;
  readonly money: boolean;
  /** Present: computed from the sums of two others. */
  readonly ratio?: { readonly numerator: string; readonly denominator: string; readonly times: number };
}

/** The names of the report families, those of advertisers first. */
export const families: readonly string[] = Object.keys(catalog.families);

/** By what a family's rows can be broken down, beside the day. */
export function dimensionsOf(family: string): readonly string[] {
  return familyOf(catalog, family).dimensions;
}

function entityOf(family: string): string {
  return familyOf(catalog, family).entity;
}

/** The text fields that these dimensions give a row, its entity first. */
export function textFields(family: string, dimensions: readonly string[]): string[] {
  return [entityOf(family), ...dimensions].flatMap((name) =>
    (catalog.dimensions[name]?.columns ?? []).map(({ id }) => id),
  );
}

/** By the name of something, the id behind it where a report can have that beside the name. */
export function idsOf(family: string): ReadonlyMap<string, string> {
  const named = [entityOf(family), ...dimensionsOf(family)].flatMap((name) => {
    const { key = '', columns = [] } = catalog.dimensions[name] ?? {};
    const [first] = columns;
    return first?.name && !columns.some(({ id }) => id === key) ? [[first.id, key] as const] : [];
  });
  return new Map(named);
}

/** The ids that tell rows of a family apart, beside their days. */
export function keysOf(family: string): string[] {
  return [entityOf(family), ...dimensionsOf(family)].flatMap((name) => catalog.dimensions[name]?.key ?? []);
}

/** Every figure of a family: its money, its counts, and what is computed from them. */
export function metricsOf(family: string): Metric[] {
  const { columns, measures, ratios } = familyOf(catalog, family);
  const rank = (id: string) => (ratios[id] ? 2 : measures[id]?.type === 'Money' ? 0 : 1);
  return [...columns]
    .sort((a, b) => rank(a) - rank(b))
    .map((id) => {
      const ratio = ratios[id];
      const type = measures[id]?.type ?? ratio?.type;
      return { id, money: type === 'Money', ...(ratio && { ratio }) };
    });
}

/** The money of a family, which is what people look at first. */
export function mainMetric(family: string): string {
  return metricsOf(family).find(({ money, ratio }) => money && !ratio)?.id ?? '';
}

/** The metric that a column belongs to, and whether it is of the compared period or the change since. */
export function partOf(column: string): { metric: string; part: 'now' | 'compared' | 'change' } {
  const [, metric = column, part] = /^(.*)_(compared|change)$/.exec(column) ?? [];
  return { metric, part: part === 'compared' || part === 'change' ? part : 'now' };
}

/** The dimension that gives rows this text field; none for the entity, which all rows have. */
export function dimensionOfField(family: string, field: string): string | undefined {
  return dimensionsOf(family).find((name) =>
    catalog.dimensions[name]?.columns.some(({ id }) => id === field),
  );
}
