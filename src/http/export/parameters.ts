import { InvalidRequest } from '../../report/request.ts';

/** A parameter that is given at most once, and the value that the field of the body would have. */
const single: Readonly<Record<string, (text: string) => unknown>> = {
  start_time: (text) => text,
  end_time: (text) => text,
};

/**
 * The fields of a report's body (contract §2.1) as an address writes them. In a body fields that nobody knows are
 * ignored; here they are refused, because an address is typed by hand, and a mistyped one would give other numbers.
 * @throws {InvalidRequest} for a parameter that is unknown or repeated; what it stands for is not looked at
 */
export function fieldsOf(parameters: URLSearchParams): Record<string, unknown> {
  const fields: Record<string, unknown> = {};
  for (const [name, text] of parameters) {
    const read = Object.hasOwn(single, name) ? single[name] : undefined;
    if (!read) throw new InvalidRequest(name.slice(0, 100), 'is no parameter of an export');
    if (Object.hasOwn(fields, name)) throw new InvalidRequest(name, 'is given more than once');
    fields[name] = read(text);
  }
  return fields;
}

/** The parameters that say the same as the fields of a body; what no report knows is left out. */
export function parametersOf(fields: Readonly<Record<string, unknown>>): URLSearchParams {
  const parameters = new URLSearchParams();
  for (const name of Object.keys(single)) {
    if (fields[name] !== undefined) parameters.set(name, String(fields[name]));
  }
  return parameters;
}
