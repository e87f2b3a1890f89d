/** Functions that read text and fail where it is not of their kind. */
const reading =
  /^(to(U?Int\d+|Float\d+|BFloat16|Decimal\d+|Date|Date32|DateTime|DateTime32|DateTime64|Time|Time64|UUID|IPv4|IPv6|Bool)|parseDateTime\w*?|(_CAST|CAST|accurateCast))$/;
const gentle = /Or(Null|Zero|Default)$/;
const ordering = /^(less|greater|lessOrEquals|greaterOrEquals|least|greatest)$/;

interface Called {
  readonly name: string;
  readonly type: string;
  /** The lines of its arguments, without what is in them. */
  readonly given: readonly string[];
}

/** The functions of an EXPLAIN QUERY TREE. */
function* calls(lines: readonly string[]): Generator<Called> {
  for (const [n, line] of lines.entries()) {
    const [, blanks, name, type] =
      /^( *)FUNCTION id: \d+, function_name: (\w+), .*result_type: (.*)$/.exec(line) ?? [];
    if (blanks === undefined || name === undefined || type === undefined) continue;
    const rest = lines.slice(n + 1);
    const end = rest.findIndex((each) => each.length - each.trimStart().length <= blanks.length);
    const own = end < 0 ? rest : rest.slice(0, end);
    yield { name, type, given: own.filter((each) => new RegExp(`^ {${blanks.length + 6}}\\w`).test(each)) };
  }
}

const isText = (line = '') => /result_type: (LowCardinality\(|Nullable\()*(Fixed)?String/.test(line);

/** A function that fails for some text it may be given, which no trial may find. */
export function functionThatFails(lines: readonly string[]): string | undefined {
  for (const { name, type, given } of calls(lines)) {
    if (!reading.test(name) || gentle.test(name) || !isText(given[0])) continue;
    if (/String/.test(type)) continue;
    const cast = /CAST/i.test(name);
    return `${cast ? `CAST to ${type}` : name} fails for text that it cannot read; use ${cast ? 'accurateCastOrNull or a function such as toInt64OrNull' : `${name}OrNull`}: such a record is rejected`;
  }
  return undefined;
}

/** Two columns that are compared letter by letter, so that 10 comes before 9. */
export function comparedAsText(lines: readonly string[]): string | undefined {
  for (const { name, given } of calls(lines)) {
    const columns = given.flatMap((line) =>
      isText(line) ? (/COLUMN id: \d+, column_name: (\{.*?\}),/.exec(line)?.[1] ?? []) : [],
    );
    if (ordering.test(name) && columns.length > 1) {
      const [a, b] = columns;
      return `${name} compares ${a} and ${b} as text; write ${a} + 0 and ${b} + 0 for numbers, toString(…) for text`;
    }
  }
  return undefined;
}
