import { type Store, select } from '../../clickhouse/client.ts';

/** Kinds of functions, as the engine's own list names them, that compute a value from values of the record alone. */
const categories = [
  'Arithmetic',
  'Arrays',
  'Bit',
  'Comparison',
  'Conditional',
  'Dates and Times',
  'Encoding',
  'Hash',
  'IP Address',
  'JSON',
  'Logical',
  'Map',
  'Mathematical',
  'Null',
  'Rounding',
  'String',
  'String Replacement',
  'String Search',
  'String Splitting',
  'Tuple',
  'Type Conversion',
  'URL',
  'UUID',
];
const alsoAllowed = ['transform', 'caseWithExpression', 'lambda'];
/** They hide other functions in their text, or make text of any size from nothing. */
const refused = ['arrayReduce', 'arrayReduceInRanges', 'formatRow', 'formatRowNoNewline'];

interface Known {
  readonly name: string;
  readonly aggregate: number;
  readonly deterministic: number;
  readonly category: string;
}

/**
 * Why a function may not stand in an expression, of the first that may not; undefined when all may. They have to
 * give the same result for the same record at any time and on any server.
 */
export async function refusedFunction(store: Store, names: readonly string[]): Promise<string | undefined> {
  const asked = names.filter((name) => !alsoAllowed.includes(name));
  const known = await select<Known & { readonly asked: string }>(
    store,
    `SELECT asked, f.name AS name, f.is_aggregate AS aggregate, ifNull(f.deterministic, 0) AS deterministic,
       if(f.alias_to = '', f.categories, original.categories) AS category
     FROM (SELECT arrayJoin({names:Array(String)}) AS asked) AS a
     CROSS JOIN system.functions AS f
     LEFT JOIN system.functions AS original ON original.name = f.alias_to
     WHERE f.name = asked OR f.case_insensitive AND lower(f.name) = lower(asked)`,
    { names: asked },
  );
  for (const name of asked) {
    const found = known.find((each) => each.asked === name);
    if (!found) return `there is no function ${name} of one record`;
    if (found.aggregate) return `${name} is computed over many records; an expression sees one`;
    if (!found.deterministic) return `${name} does not give the same result for the same record each time`;
    if (!categories.includes(found.category) || refused.includes(found.name))
      return `${name} may not stand in an expression`;
  }
  return undefined;
}
