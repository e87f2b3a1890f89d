import type * as z from 'zod';

/** What was given is not what is asked for; `field` is the first field at fault, absent for the body itself. */
export class InvalidRequest extends Error {
  /** A field of a field after a dot: `filters.device`, `order_by.0.field`. */
  readonly field: string | undefined;

  constructor(field: string | undefined, reason: string) {
    super(field === undefined ? reason : `${field} ${reason}`);
    this.field = field;
  }
}

const utf8 = new TextDecoder('utf-8', { fatal: true });

/** The text of a body. @throws {InvalidRequest} when it is not UTF-8: read as such it would have other names */
export function textOf(body: Buffer): string {
  try {
    return utf8.decode(body);
  } catch {
    throw new InvalidRequest(undefined, 'the body is not UTF-8');
  }
}

/** What a body of JSON has. @throws {InvalidRequest} when it is not JSON */
export function parsedJson(text: string, reviver?: (key: string, value: unknown) => unknown): unknown {
  try {
    return JSON.parse(text, reviver);
  } catch {
    throw new InvalidRequest(undefined, 'the body is not valid JSON');
  }
}

/** What is said of a value of another kind, unless its schema says it. */
const kinds: Partial<Record<string, string>> = { string: 'must be text', array: 'must be a list' };
const ofAnotherKind: z.core.$ZodErrorMap = ({ code, expected, path = [] }) => {
  if (code !== 'invalid_type') return undefined;
  return path.length === 0 ? 'the body must be a JSON object' : kinds[String(expected)];
};

/** What was given for an input, as its schema has it. @throws {InvalidRequest} naming the first wrong field */
export function judged<Shape extends z.ZodObject>(
  { input }: { readonly input: Shape },
  given: unknown,
): z.output<Shape> {
  const { success, data, error } = input.safeParse(given, { reportInput: true, error: ofAnotherKind });
  if (success) return data;
  const issue = error.issues[0];
  if (issue?.code === 'unrecognized_keys') {
    const names = Object.keys(input.shape);
    const known = names.length > 0 ? `known: ${names.join(', ')}` : 'this path takes no parameters';
    throw new InvalidRequest(issue.keys[0], `is not known; ${known}`);
  }
  const field = issue?.path.join('.') || undefined;
  const isMissing = field !== undefined && issue?.input === undefined;
  throw new InvalidRequest(field, isMissing ? 'is required' : (issue?.message ?? ''));
}
