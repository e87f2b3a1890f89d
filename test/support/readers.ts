import { parseXml, XmlElement } from '@rgrove/parse-xml';
import { type DataType, Type, tableFromIPC } from 'apache-arrow';
import { parse as parseCsv } from 'csv-parse/sync';
import { unzipSync } from 'fflate';
import { parquetMetadata, parquetReadObjects, parquetSchema } from 'hyparquet';
import { compressors } from 'hyparquet-compressors';
import { type LosslessNumber, parse } from 'lossless-json';
import { expect } from 'vitest';
import type { ReportFormatName } from '../../src/report/formats.ts';

export type RowFormat = Exclude<ReportFormatName, 'json'>;

/** A report as a table of text: every value digit for digit, decimals without trailing zeros. */
export interface Table {
  readonly columns: readonly string[];
  readonly rows: readonly (readonly string[])[];
}

/** Independent readers, one for each format. */
export const readers: Record<RowFormat, (body: Buffer) => Table | Promise<Table>> = {
  ndjson: (body) => {
    const lines = body.toString().split('\n');
    expect(lines.pop()).toBe('');
    return tableOf(lines.map((line) => parse(line) as JsonRow));
  },
  csv: (body) => {
    const [columns = [], ...rows] = parseCsv(body);
    return { columns, rows };
  },
  arrow: (body) => {
    // Readers do not miss the end of the stream, so it is looked at here.
    expect(body.subarray(-8).toString('hex')).toBe('ffffffff00000000');
    const table = tableFromIPC(body);
    const columns = table.schema.fields.map(({ name, type }) => ({
      name,
      type,
      values: table.getChild(name),
    }));
    return {
      columns: columns.map(({ name }) => name),
      rows: Array.from({ length: table.numRows }, (_, n) =>
        columns.map(({ type, values }) => arrowText(type, values?.get(n))),
      ),
    };
  },
  parquet: async (body) => {
    const file = new Uint8Array(body).buffer;
    const metadata = parquetMetadata(file);
    const columns = parquetSchema(metadata).children.map(({ element }) => element.name);
    const scales = new Map(metadata.schema.map((element) => [element.name, element.scale]));
    for (const element of metadata.schema) {
      if (element.converted_type !== 'DECIMAL') continue;
      // The reader would make it a float; without its type it stays the bytes of the integer.
      delete element.converted_type;
      delete element.logical_type;
    }
    const rows = await parquetReadObjects({ file, metadata, compressors });
    return {
      columns,
      rows: rows.map((row) => columns.map((name) => parquetText(row[name], scales.get(name)))),
    };
  },
  xlsx: sheetTable,
};

/** As spreadsheets read it: the style of a cell says whether its number is a day. */
function sheetTable(body: Buffer): { columns: string[]; rows: string[][] } {
  const files = unzipSync(body);
  const elements = (path: string, name: string) => childrenOf(xml(files[path]), name);
  const formats = elements('xl/styles.xml', 'cellXfs').flatMap((list) => childrenOf(list, 'xf'));
  const [head = [], ...rows] = elements('xl/worksheets/sheet1.xml', 'sheetData')
    .flatMap((data) => childrenOf(data, 'row'))
    .map((row) =>
      childrenOf(row, 'c').map((cell) => {
        if (cell.attributes.t === 'inlineStr') {
          return cell.text.replace(/_x([0-9A-F]{4})_/gi, (_, code) =>
            String.fromCharCode(Number.parseInt(code, 16)),
          );
        }
        const isDay = formats[Number(cell.attributes.s)]?.attributes.numFmtId === '14';
        return isDay ? dayText(new Date(Date.UTC(1899, 11, 30 + Number(cell.text)))) : cell.text;
      }),
    );
  return { columns: head, rows };
}

function xml(file: Uint8Array | undefined): XmlElement {
  const { root } = parseXml(Buffer.from(file ?? []).toString());
  if (!root) throw new Error('no XML');
  return root;
}

const childrenOf = ({ children }: XmlElement, name: string) =>
  children.filter((child): child is XmlElement => child instanceof XmlElement && child.name === name);

/** Numbers are kept as the digits they are written with. */
export type JsonRow = Record<string, string | LosslessNumber>;

/** Rows of JSON; all must have the same columns in the same order. */
export function tableOf(rows: readonly JsonRow[]): Table {
  const [first = {}] = rows;
  const columns = Object.keys(first);
  for (const row of rows) expect(Object.keys(row)).toEqual(columns);
  return { columns, rows: rows.map((row) => Object.values(row).map(String)) };
}

function arrowText(type: DataType, value: unknown): string {
  if (type.typeId === Type.Utf8 && typeof value === 'string') return value;
  if (type.typeId === Type.Date && typeof value === 'number') return dayText(new Date(value));
  if (type.typeId === Type.Int && typeof value === 'bigint') return `${value}`;
  if (type.typeId === Type.Decimal && value instanceof Uint32Array) {
    const whole = value.reduceRight((sum, word) => (sum << 32n) | BigInt(word), 0n);
    return decimal(BigInt.asIntN(32 * value.length, whole), (type as { scale?: number }).scale);
  }
  throw new Error(`${type} with ${typeof value} is no column of a report`);
}

function parquetText(value: unknown, scale: number | undefined): string {
  if (typeof value === 'string' || typeof value === 'bigint') return `${value}`;
  if (value instanceof Date) return dayText(value);
  if (!(value instanceof Uint8Array)) throw new Error(`${typeof value} is no column of a report`);
  const whole = BigInt(`0x${Buffer.from(value).toString('hex')}`);
  return decimal(BigInt.asIntN(8 * value.length, whole), scale);
}

const dayText = (day: Date) => day.toISOString().slice(0, 10);

function decimal(whole: bigint, scale = 0): string {
  const digits = `${whole < 0n ? -whole : whole}`.padStart(scale + 1, '0');
  const places = digits.slice(digits.length - scale).replace(/0+$/, '');
  return `${whole < 0n ? '-' : ''}${digits.slice(0, digits.length - scale)}${places && `.${places}`}`;
}
