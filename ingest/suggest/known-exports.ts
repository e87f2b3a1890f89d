import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { catalog } from '../../catalog/catalog.ts';
import { type EventField, eventFields, isEventField } from '../../catalog/events.ts';
import { parseExpression } from '../mapping/expression.ts';
import type { MappingText } from '../mapping/read-mapping.ts';
import type { Beginning } from './beginning.ts';

/** An export of which there is an example. */
export interface KnownExport {
  /** That of the file of its mapping. */
  readonly file: string;
  readonly mapping: MappingText;
}

/**
 * The examples of a folder whose columns have names: what is known of exports is what they say.
 * @param folder `examples/` of this version
 */
export async function knownExports(folder: string): Promise<KnownExport[]> {
  const found: KnownExport[] = [];
  for (const file of (await readdir(folder)).sort()) {
    if (!file.endsWith('.json') || file.endsWith('.data.json')) continue;
    const mapping: MappingText = JSON.parse(await readFile(join(folder, file), 'utf8'));
    if (mapping.header ?? true) found.push({ file, mapping });
  }
  return found;
}

const withoutCurrency = (column: string) => column.replace(/\([A-Z]{3}\)/, '()');

/** Columns that a mapping reads, without those it does not name. */
export function columnsOf({ map = {}, expressions = {}, where }: MappingText): string[] {
  const texts = [...Object.values(expressions), ...(where === undefined ? [] : [where])];
  return [...new Set([...Object.values(map), ...texts.flatMap((text) => parseExpression(text).columns)])];
}

/**
 * The export whose columns the file has, with their names as they are in the file: they may name another currency. Of
 * several the one that reads most.
 */
export function recognise(
  all: readonly KnownExport[],
  { columns, layout }: Beginning,
): KnownExport | undefined {
  const fitting = all.flatMap(({ file, mapping }) => {
    const sameWay = mapping.records === layout.records && (layout.header ?? true);
    const wanted = columnsOf(mapping);
    const names = wanted.map(
      (column) =>
        columns.find((each) => each === column) ??
        columns.find((each) => withoutCurrency(each) === withoutCurrency(column)),
    );
    if (!sameWay || names.includes(undefined)) return [];
    const renamed = new Map(wanted.map((column, n) => [column, names[n] ?? column]));
    return [{ file, mapping: renameColumns(mapping, renamed), reads: wanted.length }];
  });
  return fitting.sort((a, b) => b.reads - a.reads)[0];
}

function renameColumns(mapping: MappingText, renamed: ReadonlyMap<string, string>): MappingText {
  const inText = (text: string) =>
    text.replace(/\{([^{}]*)\}/g, (_, name) => `{${renamed.get(name) ?? name}}`);
  const each = (texts: Readonly<Record<string, string>>, change: (text: string) => string) =>
    Object.fromEntries(Object.entries(texts).map(([field, text]) => [field, change(text)]));
  const { map, expressions, where } = mapping;
  return {
    ...mapping,
    ...(map && { map: each(map, (name) => renamed.get(name) ?? name) }),
    ...(expressions && { expressions: each(expressions, inText) }),
    ...(where !== undefined && { where: inText(where) }),
  };
}

/** A name without what platforms differ in: case, blanks, signs, what stands in brackets, and that money is in millionths. */
export function plainName(column: string): string {
  return column
    .toLowerCase()
    .replace(/[_ ]micros?$/, '')
    .replace(/\([^()]*\)/g, '')
    .replace(/[^\p{L}\p{N}]/gu, '');
}

const lastDays =
  /^(?:date|day|datum|fecha|data|report|reporting|period|week)?(?:ends?|ending|stop|to|until|till|through|thru|last|bis|ende|fin|hasta|fine)(?:day|date|time|datum|tag)?$/;
/** By its name: the last day of records that may be of several days, and not that of a campaign. */
export const isLastDay = (column: string): boolean => lastDays.test(plainName(column));

const measures = Object.values(catalog.families).flatMap((family) => Object.entries(family.measures));
/** Names of fields and of columns of our reports, whose money is in units. */
export const ourNames: ReadonlySet<string> = new Set([...eventFields, ...measures.map(([name]) => name)]);

/** What columns of a name are in the examples and in reports of ours, and fields by their own names. */
export function fieldsByName(all: readonly KnownExport[]): ReadonlyMap<string, ReadonlySet<EventField>> {
  const fields = new Map<string, Set<EventField>>();
  const add = (column: string, field: string) => {
    if (!isEventField(field)) return;
    const known = fields.get(plainName(column)) ?? new Set();
    fields.set(plainName(column), known.add(field));
  };
  for (const field of eventFields) add(field, field);
  for (const [name, { sumOf }] of measures) add(name, sumOf);
  for (const { mapping } of all) {
    for (const [field, column] of Object.entries(mapping.map ?? {})) add(column, field);
    for (const [field, text] of Object.entries(mapping.expressions ?? {})) {
      const [column, ...others] = new Set(parseExpression(text).columns);
      if (column !== undefined && others.length === 0) add(column, field);
    }
  }
  return fields;
}
