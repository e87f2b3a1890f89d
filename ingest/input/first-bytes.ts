import { isUtf8 } from 'node:buffer';
import type { Compression } from './compression.ts';
import { InputError } from './input-error.ts';
import { hint, optionHint } from './option-hint.ts';

/** How text is encoded; `bomBytes` are to be left out. */
export interface TextEncoding {
  readonly name: 'utf-8' | 'utf-16le' | 'utf-16be';
  readonly bomBytes: number;
}

const readBy = (format: string, mediaType: string) =>
  hint(`--format ${format}`, `content-type ${mediaType}`, 'reads it');
const saveAsCsv = 'save the sheet as "CSV UTF-8"';

// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what tells packed data from text.
const control = /[\x00-\x08\x0e-\x1f]/;

/** First bytes of files that hold no text, and what to do with such a file. */
const binaryFiles: readonly (readonly [start: string, advice: string])[] = [
  ['PAR1', `it is a Parquet file${readBy('parquet', 'application/vnd.apache.parquet')}`],
  ['Obj\x01', `it is an Avro file${readBy('avro', 'application/avro')}`],
  ['PARE', 'it is an encrypted Parquet file; write it without encryption'],
  ['PK\x03\x04', 'it is a zip archive; unpack it first'],
  ['\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1', `it is an Excel workbook; ${saveAsCsv}`],
  ['BZh', 'it is packed with bzip2; unpack it first'],
  ['\xfd7zXZ\x00', 'it is packed with xz; unpack it first'],
  ['\x04\x22\x4d\x18', 'it is packed with lz4; unpack it first'],
  ['7z\xbc\xaf\x27\x1c', 'it is a 7-Zip archive; unpack it first'],
  ['\xff\xfe\x00\x00', 'it is UTF-32 text; save it as UTF-8'],
  ['\x00\x00\xfe\xff', 'it is UTF-32 text; save it as UTF-8'],
];

/** Refuses what is known to hold no text. @throws {InputError} that says what it is, without the file's name */
export function refuseBinary(head: Buffer): void {
  const found = binaryFiles.find(([start]) => startsWith(head, start));
  // Text may begin with the same letters.
  if (!found || !control.test(head.toString('latin1'))) return;
  const [start, advice] = found;
  // The names of its parts; the first of them stands close to the beginning.
  const isWorkbook = start.startsWith('PK') && (head.includes('[Content_Types].xml') || head.includes('xl/'));
  throw new InputError(isWorkbook ? `it is an Excel workbook; ${saveAsCsv}` : advice);
}

/**
 * How a file is packed. Its first bytes decide, so that a wrong name does no harm: packed data under a plain name
 * is unpacked, and text that is named `.gz` or `.zst` (what browsers leave behind that unpack a download) is read as
 * text. Brotli data has no mark of its own: there the name decides.
 * @throws {InputError} without the file's name, for a `.gz` or `.zst` that is neither packed nor text
 */
export function compressionOf(head: Buffer, byName: Compression): Compression {
  // Nothing holds nothing, packed or not.
  if (head.length === 0) return 'none';
  if (byName === 'brotli') return byName;
  const byContent = packingMark(head);
  if (byContent !== 'none' || byName === 'none') return byContent;
  if (isText(head)) return 'none';
  refuseBinary(head);
  throw new InputError(`it is named as ${byName}, but holds neither ${byName} data nor text`);
}

/** What the first bytes say; `none` for brotli too. */
export function packingMark(head: Buffer): Compression {
  if (startsWith(head, '\x1f\x8b')) return 'gzip';
  const isSkippableFrame = head.length >= 4 && head.readUInt32LE() >>> 4 === 0x184d2a5;
  return startsWith(head, '\x28\xb5\x2f\xfd') || isSkippableFrame ? 'zstd' : 'none';
}

/**
 * The encoding of text, from its byte order mark. Without one it is UTF-8, unless the first four characters are
 * ASCII in UTF-16, as some databases export it: no UTF-8 text begins with a NUL in every second byte.
 */
export function textEncodingOf(head: Buffer): TextEncoding {
  if (startsWith(head, '\xef\xbb\xbf')) return { name: 'utf-8', bomBytes: 3 };
  if (startsWith(head, '\xff\xfe')) return { name: 'utf-16le', bomBytes: 2 };
  if (startsWith(head, '\xfe\xff')) return { name: 'utf-16be', bomBytes: 2 };
  const start = [...head.subarray(0, 8)];
  const hasNuls = (odd: 0 | 1) =>
    start.length === 8 && start.every((byte, n) => (byte === 0) === (n % 2 === odd));
  if (hasNuls(1)) return { name: 'utf-16le', bomBytes: 0 };
  return { name: hasNuls(0) ? 'utf-16be' : 'utf-8', bomBytes: 0 };
}

/** @throws {InputError} without the file's name, for a beginning that is not UTF-8 */
export function requireUtf8(head: Buffer): void {
  // Makes no text of it.
  if (isUtf8(head) || textOf(head, 'utf-8') !== undefined) return;
  throw new InputError(
    `the text is not UTF-8: save it as UTF-8${optionHint('encoding', 'names what it is, such as windows-1252; of events utf-8 rejects only the records that are not UTF-8')}`,
  );
}

/** Whether the first line ends with a CR alone. CRs before an LF are part of a CRLF that was converted twice. */
export function endsLinesWithCr(head: Buffer): boolean {
  return /^[^\r\n]*\r+(?![\r\n])/.test(head.toString('latin1'));
}

/** Whether it can be the beginning of a text file, in UTF-8 or UTF-16. */
function isText(head: Buffer): boolean {
  const text = textOf(head, textEncodingOf(head).name);
  return text !== undefined && !control.test(text);
}

/** Undefined for what is no text in this encoding. */
function textOf(head: Buffer, encoding: TextEncoding['name']): string | undefined {
  try {
    // The last character may be cut off.
    return new TextDecoder(encoding, { fatal: true }).decode(head, { stream: true });
  } catch {
    return undefined;
  }
}

function startsWith(head: Buffer, start: string): boolean {
  return head.toString('latin1', 0, start.length) === start;
}
