/** The text of a result, of type Nullable(String); undefined where a value of this type has none that is exact. */
export function resultText(type: string): string | undefined {
  const plain = plainType(type);
  if (/^DateTime/.test(plain)) return "concat(toString(toTimeZone(result, 'UTC')), 'Z')";
  const scalar = /^(String|FixedString|U?Int\d+|Decimal|Bool|Date|Date32|Enum\d+|UUID)(\(|$)/;
  return scalar.test(plain) ? 'toString(result)' : undefined;
}

function plainType(type: string): string {
  const inner = /^(?:Nullable|LowCardinality)\((.*)\)$/.exec(type)?.[1];
  return inner === undefined ? type : plainType(inner);
}

/** Why a value of this type has no such text; undefined where it has one. */
export function unfit(type: string): string | undefined {
  if (resultText(type) !== undefined) return undefined;
  const plain = plainType(type);
  if (/Float/.test(plain)) {
    return `comes to a ${plain}, which is not exact; read text with toDecimal64OrNull(…, 6), and write 0.5 for .5`;
  }
  return plain === 'Nothing' ? 'is always NULL' : `comes to a ${plain}, which is not one value`;
}

/** Why a value of this type is no truth value; undefined for one that is. Comparisons come to a UInt8. */
export function noTruth(type: string): string | undefined {
  const plain = plainType(type);
  if (/^(Bool|UInt8)$/.test(plain)) return undefined;
  if (plain === 'Nothing') return 'is always NULL';
  return `comes to a ${plain}, which is not true or false; compare it, as in {A} != 'Total' or {A} > 0`;
}
