import { type Compression, compressionNamed } from './compression.ts';
import {
  compressionOf,
  endsLinesWithCr,
  packingMark,
  refuseBinary,
  requireUtf8,
  textEncodingOf,
} from './first-bytes.ts';
import type { Input, InputReader } from './input.ts';
import { fileError, InputError } from './input-error.ts';
import { beginsWithArray, type RecordsPath, recordsOfArray, refuseObjectOfLines } from './json-records.ts';
import { fill, headBytes, piecesOf, readerOf } from './pieces.ts';
import { crToLf, toUtf8 } from './text.ts';
import { unpack } from './unpack.ts';

/** The text of an input. */
export interface ByteSource extends InputReader {
  /**
   * Fills `target` with the bytes from `start` on, once more and also after it is closed; returns how many there were.
   * Only an input that has a size and holds its text as it is can do so.
   */
  readonly readAgain?: (target: Buffer, start: number) => Promise<number>;
  /** What its lines are in the input; `record` where they were made of the elements of an array. */
  readonly unit: 'line' | 'record';
}

/** How the text of an input is to be read. */
export interface TextReading {
  /** How it is encoded, by the name of TextDecoder; absent: Unicode, which is seen. */
  readonly encoding?: string | undefined;
  /** Of JSON: where an array of records is, if there is one. Absent: the text is no JSON. */
  readonly records?: RecordsPath;
  /** Is shown what is read, and nothing at the end. */
  readonly onText?: (bytes: Buffer) => void;
}

/**
 * The text of an input: unpacked, in UTF-8 without a byte order mark, with lines that end with LF or CRLF. What it is
 * follows from its first 64 KiB, so that the same file always gives the same bytes. UTF-16 is converted; so are CR line
 * ends (those of `CSV (Macintosh)`) if the first line ends with one. An array of JSON becomes NDJSON. Everything else is passed on as it is, and a plain
 * file is read directly into the target.
 * @param onBytes called with the number of bytes read from the input itself
 * @param signal ends the reading, also where it waits for more
 * @throws {InputError} that names the input, here or from `read`: it cannot be read, holds no text, or its packed data
 * its UTF-16 or its array is damaged or truncated; then only when that point is reached
 */
export async function openBytes(
  input: Input,
  onBytes: (bytes: number) => void,
  signal?: AbortSignal,
  reading: TextReading = {},
): Promise<ByteSource> {
  const named = (cause: unknown) => {
    throw fileError(input.name, cause);
  };
  const raw = await input.readFrom(0, signal).catch(named);
  try {
    const opened = await openText(counted(raw, onBytes), compressionNamed(input), reading);
    const { text, bytesBefore, unit } = opened;
    const { size, read, close } = text;
    return {
      read: async (target) => {
        const bytes = await read(target).catch(named);
        reading.onText?.(target.subarray(0, bytes));
        return bytes;
      },
      close,
      unit,
      ...(size !== undefined && {
        size,
        ...(raw.wasTouched && { wasTouched: raw.wasTouched }),
        readAgain: (target, start) => input.readRange(target, start + bytesBefore).catch(named),
      }),
    };
  } catch (cause) {
    await raw.close();
    return named(cause);
  }
}

/** The same as pieces. @see openBytes */
export async function* readInput(
  input: Input,
  onBytes: (bytes: number) => void = () => {},
  reading?: TextReading,
): AsyncGenerator<Buffer> {
  const source = await openBytes(input, onBytes, undefined, reading);
  try {
    yield* piecesOf(source);
  } finally {
    await source.close();
  }
}

function counted(raw: InputReader, onBytes: (bytes: number) => void): InputReader {
  if (raw.whole) onBytes(raw.whole.length);
  const read = async (target: Buffer) => {
    const bytes = await raw.read(target);
    if (bytes > 0) onBytes(bytes);
    return bytes;
  };
  return { ...raw, read };
}

/** The size of the text is known only where the input holds it as it is, behind `bytesBefore` bytes. */
async function openText(raw: InputReader, byName: Compression, { encoding, records }: TextReading) {
  const packed = await peek(raw);
  const compression = compressionOf(packed.head, byName);
  let text = packed;
  if (compression !== 'none') {
    text = await peek(readerOf(unpack(piecesOf(packed), compression), packed.close));
    if (packingMark(text.head) !== 'none') {
      throw new InputError(`the ${compression} data holds packed data again; unpack it first`);
    }
  }
  refuseBinary(text.head);
  const seen = textEncodingOf(text.head);
  const name = encoding ?? seen.name;
  // A byte order mark is one of the encoding that is named, or no mark.
  const bomBytes = name === seen.name ? seen.bomBytes : 0;
  if (bomBytes > 0) await text.read(Buffer.alloc(bomBytes));
  // What was converted has lost its mark.
  const asWritten = text;
  if (encoding === undefined && name === 'utf-8') requireUtf8(text.head);
  if (name !== 'utf-8') text = await peek(readerOf(toUtf8(piecesOf(text), name), text.close));
  if (endsLinesWithCr(text.head)) text = await peek(readerOf(crToLf(piecesOf(text)), text.close));
  const head = text === asWritten ? text.head.subarray(bomBytes) : text.head;
  if (records && (records.length > 0 || beginsWithArray(head))) {
    const lines: InputReader = readerOf(recordsOfArray(piecesOf(text), records), text.close);
    return { text: lines, bytesBefore: 0, unit: 'record' as const };
  }
  if (records) refuseObjectOfLines(head);
  const { size, read, close } = text;
  return {
    text: { read, close, ...(size !== undefined && { size: size - bomBytes }) },
    bytesBefore: bomBytes,
    unit: 'line' as const,
  };
}

/** A reader whose first bytes are known. */
interface PeekedReader extends InputReader {
  /** As many bytes as `headBytes`, or all there are. */
  readonly head: Buffer;
}

async function peek(reader: InputReader): Promise<PeekedReader> {
  const head = reader.whole ?? (await headOf(reader));
  const ended = reader.whole !== undefined || head.length < headBytes;
  let unread = head;
  return {
    ...reader,
    head,
    read: (target) => {
      if (unread.length === 0) return ended ? Promise.resolve(0) : reader.read(target);
      const bytes = unread.copy(target);
      unread = unread.subarray(bytes);
      return Promise.resolve(bytes);
    },
  };
}

async function headOf({ read }: InputReader): Promise<Buffer> {
  const head = Buffer.allocUnsafeSlow(headBytes);
  return head.subarray(0, await fill(head, read));
}
