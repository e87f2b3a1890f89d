import { buffer } from 'node:stream/consumers';
import { parse as parseCsv } from 'csv-parse/sync';
import * as z from 'zod';
import { eventFields } from '../../catalog/events.ts';
import { describePlace, placeAt } from '../event/record-place.ts';
import { csv } from '../formats/csv.ts';
import type { Format } from '../formats/format.ts';
import { formatOf } from '../formats/formats.ts';
import { readInput } from '../input/byte-source.ts';
import type { Input } from '../input/input.ts';
import { fileError, InputError } from '../input/input-error.ts';
import { withoutHints } from '../input/option-hint.ts';

/** A row of a corrected export: which rejected row it is, and its fields now. */
export interface Correction {
  readonly chunk: string;
  /** See record-place.ts. */
  readonly line: number;
  readonly fields: Readonly<Record<string, string>>;
}

const place = {
  line: z.coerce.number().int().positive(),
  event_number: z.coerce.number().int().min(0).default(0),
};
const ndjsonRow = z.object({
  ...{ chunk: z.string(), ...place },
  event: z.record(z.string(), z.union([z.string(), z.boolean()]).transform(String)),
});
const csvRow = z.looseObject({ chunk: z.string().min(1), ...place });

// A string that never ends is taken whole, too: JSON.parse refuses it.
const stringOrNumber = /("[^"\\]*(?:\\.[^"\\]*)*"?)|-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/g;

/** A line with its numbers as strings: a number of JavaScript has 15 digits of an id or of an amount. `12.0` is `12`. */
function quoteNumbers(line: string): string {
  return line.replace(stringOrNumber, (found, string) => string ?? `"${found.replace(/\.0+$/, '')}"`);
}

/** @throws {InputError} where it is no text in Unicode; a replay has no option that says how else it is to be read */
async function textOf(input: Input): Promise<string> {
  const bytes = await buffer(readInput(input)).catch((cause: unknown) => {
    throw cause instanceof InputError ? new InputError(withoutHints(cause.message), { cause }) : cause;
  });
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch (cause) {
    throw fileError(input.name, cause);
  }
}

function formatOfExport(input: Input): Format {
  try {
    return formatOf(input);
  } catch (cause) {
    const advice = 'the name does not tell the format; end it in .csv or .ndjson';
    throw new InputError(`${input.name}: ${advice}`, { cause });
  }
}

/**
 * The rows of a corrected export.
 * @throws {InputError} when the file is no corrected export, or has two corrections of a rejected row
 */
export async function readCorrections(input: Input): Promise<Correction[]> {
  const corrections = await rowsOf(input);
  const places = new Map<string, number>();
  for (const [n, { chunk, line }] of corrections.entries()) {
    const first = places.get(`${chunk}:${line}`);
    if (first !== undefined)
      throw new InputError(
        `${input.name}: rows ${first + 1} and ${n + 1} are both corrections of ${describePlace('line', line)}; leave one of them out`,
      );
    places.set(`${chunk}:${line}`, n);
  }
  return corrections;
}

async function rowsOf(input: Input): Promise<Correction[]> {
  const format = formatOfExport(input);
  const text = await textOf(input);
  const notExported = (what: string, cause?: unknown) =>
    new InputError(
      `${input.name}: is not a corrected export${what}; "rejects" writes one as CSV or NDJSON: correct its event columns, keep all of them, chunk and line`,
      { cause },
    );
  try {
    if (format === csv) {
      // Without one of them every row would lose that value.
      const columns = (names: string[]) => {
        const lost = eventFields.find((field) => !names.includes(field));
        if (lost !== undefined) throw notExported(`: it has no column ${lost}`);
        return names;
      };
      const rows: unknown[] = parseCsv(text, { columns, bom: true, skip_empty_lines: true });
      return rows.map((row) => {
        const { chunk, line, event_number: number, ...cells } = csvRow.parse(row);
        return {
          chunk,
          line: placeAt(line, number),
          fields: Object.fromEntries(eventFields.map((name) => [name, String(cells[name])])),
        };
      });
    }
    const lines = text.split('\n').filter((line) => line.trim() !== '');
    return lines.map((line) => {
      const {
        chunk,
        line: row,
        event_number: number,
        event,
      } = ndjsonRow.parse(JSON.parse(quoteNumbers(line)));
      return { chunk, line: placeAt(row, number), fields: event };
    });
  } catch (cause) {
    throw cause instanceof InputError ? cause : notExported('', cause);
  }
}
