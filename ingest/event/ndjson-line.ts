import { isLosslessNumber, parse as parseJson } from 'lossless-json';
import { isEventField, type LineFault, type LineFields } from './event-rules.ts';

/** What a line of NDJSON holds, exactly, or why it cannot be read. */
export function jsonFields(text: string): { fields: LineFields; faults: LineFault[] } {
  let value: unknown;
  try {
    // Like the engine, which takes a tab inside a text as it is.
    value = parseJson(text.replace(/"(?:[^"\\]|\\.)*"/g, (part) => part.replaceAll('\t', '\\t')));
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    return { fields: {}, faults: [{ field: '', reason: `is not one JSON object: ${reason}` }] };
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value) || isLosslessNumber(value)) {
    return { fields: {}, faults: [{ field: '', reason: 'is not one JSON object' }] };
  }
  const fields: Record<string, string | undefined> = {};
  const faults: LineFault[] = [];
  for (const [field, content] of Object.entries(value)) {
    const fits =
      isLosslessNumber(content) || typeof content === (field === 'confirmed' ? 'boolean' : 'string');
    if (fits) fields[field] = String(content);
    // Nothing counts as empty; what no event has is told by its name, whatever it holds.
    else if (content === null || !isEventField(field)) fields[field] = '';
    else {
      const wanted = field === 'confirmed' ? 'true or false' : 'text or a number';
      const found = Array.isArray(content) ? 'list' : typeof content;
      faults.push({ field, reason: `must be ${wanted}, not ${found === 'object' ? 'an' : 'a'} ${found}` });
    }
  }
  return { fields, faults };
}

/** Numbers that a floating point number may not keep digit for digit; also what only looks like one. */
const riskyNumber = /:\s*-?(?:\d[\d.]*[eE]|[\d.]{15,})|"quantity"\s*:\s*-?\d*\./;

/**
 * What a line of NDJSON holds, several times as fast, for lines of which that is certain: undefined for all
 * others. Numbers are as large as they were written, if not as long (`1.10` is `1.1`).
 */
export function quickJsonFields(text: string): LineFields | undefined {
  if (riskyNumber.test(text)) return undefined;
  let fields: Record<string, unknown>;
  try {
    fields = JSON.parse(text);
  } catch {
    // Read again, exactly, to say why.
    return undefined;
  }
  if (!isObject(fields)) return undefined;
  const names = Object.keys(fields);
  // More of them: a name is there twice, which the engine refuses.
  if (occurrences('":', text) !== names.length) return undefined;
  return names.every((name) => becomesText(fields, name)) ? (fields as LineFields) : undefined;
}

function occurrences(part: string, text: string): number {
  let found = 0;
  for (let at = text.indexOf(part); at >= 0; at = text.indexOf(part, at + part.length)) found++;
  return found;
}

/** Makes text of a value in its place; false where it is of a kind that the field cannot have. */
function becomesText(fields: Record<string, unknown>, name: string): boolean {
  const content = fields[name];
  if (content === null) fields[name] = '';
  else if (typeof content === (name === 'confirmed' ? 'boolean' : 'number')) fields[name] = String(content);
  else return typeof content === 'string' && name !== 'confirmed';
  return true;
}

/** Escapes, of which only the valid ones are captured, and control characters. */
const unreadable = /(\\(?:u[0-9a-fA-F]{4}|["\\/bfnrt]))|\\.|\p{Cc}/gsu;
const leniencies = /"(?:[^"\\]|\\.)*"|[\f\v]+|\}\s*,?\s*(?=\{)|,\s*$/gs;

/**
 * Whether a line that is no JSON object may be what the engine takes for one all the same, or for several: a
 * comma behind it, objects side by side, escapes that JSON does not have, other blanks. The engine has the last word.
 */
export function mayBeTaken(text: string): boolean {
  const strict = text.replace(leniencies, (part) => {
    if (part.startsWith('"')) return part.replace(unreadable, (_, valid = 'x') => valid);
    return part.startsWith('}') ? '},' : ' ';
  });
  try {
    const values: unknown[] = JSON.parse(`[${strict}]`);
    return values.length > 0 && values.every(isObject);
  } catch {
    return false;
  }
}

function isObject(value: unknown): boolean {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
