import type { ReadStatement } from '../../clickhouse/reader.ts';

/** A statement with its parameters and settings, as the reviewed ones are written down. */
export function readable({ query, params, settings }: ReadStatement): string {
  const list = (values: object) => Object.entries(values).map(([name, value]) => `--   ${name} = ${value}`);
  return [`${query};`, '-- parameters', ...list(params), '-- settings', ...list(settings)].join('\n');
}
