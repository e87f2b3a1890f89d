import type { Catalog, Dimension, Family } from './catalog.ts';

/** A family and the dimensions its rows are broken down by; `day` says whether each row covers one day. */
export interface Breakdown {
  readonly family: string;
  readonly dimensions: readonly string[];
  readonly day: boolean;
}

/** An endpoint of the contract: a path and the breakdown it returns. */
export interface Endpoint {
  readonly path: string;
  readonly breakdown: Breakdown;
}

/** The name of an endpoint where a path does not fit: `campaigns_device_date`. */
export function endpointName(path: string): string {
  return path.replace('/v1/', '').replace('/breakdowns', '').replaceAll('/', '_');
}

/** Every subset of the family's breakdown dimensions, coarsest first, each in catalog order. */
export function combinations(family: Family): string[][] {
  const subsets: string[][] = [[]];
  for (const dimension of family.dimensions) {
    subsets.push(...subsets.map((subset) => [...subset, dimension]));
  }
  return subsets;
}

const known = new WeakMap<Catalog, readonly Endpoint[]>();

/** Every path of the contract, aliases last; the same objects each time. */
export function endpoints(catalog: Catalog): readonly Endpoint[] {
  const all = known.get(catalog) ?? endpointsOf(catalog);
  known.set(catalog, all);
  return all;
}

function endpointsOf(catalog: Catalog): Endpoint[] {
  const paths = Object.entries(catalog.families).flatMap(([name, family]) =>
    combinations(family).flatMap((dimensions) =>
      [false, true].map((day) => {
        const parts = [...dimensions, ...(day ? ['date'] : [])];
        const path = parts.length ? `/v1/${name}/breakdowns/${parts.join('_')}` : `/v1/${name}`;
        return { path, breakdown: { family: name, dimensions, day } };
      }),
    ),
  );
  const aliases = Object.entries(catalog.aliases).map(([path, target]) => {
    const endpoint = paths.find((candidate) => candidate.path === target);
    if (!endpoint) throw new Error(`alias ${path} points at ${target}, which is not an endpoint`);
    return { path, breakdown: endpoint.breakdown };
  });
  return [...paths, ...aliases];
}

/** The family of that name. @throws when the catalog has none */
export function familyOf(catalog: Catalog, name: string): Family {
  const family = catalog.families[name];
  if (!family) throw new Error(`the catalog has no family ${name}`);
  return family;
}

/** The dimension of that name. @throws when the catalog has none */
export function dimensionOf(catalog: Catalog, name: string): Dimension {
  const dimension = catalog.dimensions[name];
  if (!dimension) throw new Error(`the catalog has no dimension ${name}`);
  return dimension;
}

/** Where a caller asks something of a family beside its reports. */
export function questionPath(
  family: string,
  question: 'changes' | 'explain' | 'closes' | 'adjustments' | 'reconcile',
): string {
  return `/v1/${family}/${question}`;
}

/** The table that says when the days of an account last changed in the reports of a family. */
export function changesTable(family: string): string {
  return `${family}_changes`;
}

/** The table that holds the rows of a family as they were when their month was closed. */
export function closedTable(family: string): string {
  return `${family}_closed`;
}

/** The table that answers a breakdown, dated or not: rollups are always by day. */
export function rollupTable(family: string, dimensions: readonly string[]): string {
  return [family, ...dimensions, 'date'].join('_');
}
