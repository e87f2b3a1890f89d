import type { ByteSource } from '../input/byte-source.ts';
import { InputError } from '../input/input-error.ts';
import { scanRecords } from './csv-scan.ts';

export interface LineReaderOptions {
  /** For messages. */
  readonly file: string;
  /** Whether quoted fields may hold line ends. */
  readonly csv: boolean;
}

/** A single line longer than this is not an event. */
const maxLineBytes = 16 << 20;
const newline = 10;
const carriageReturn = 13;
const quote = 34;

/** Read beyond what was asked for, so that the next line is there as well. */
const aheadBytes = 1 << 20;

/** Bytes that have been read but not yet taken, and where in the file they begin. */
export class LineReader {
  readonly #source: ByteSource;
  readonly #options: LineReaderOptions;
  /** What is in memory; what is taken stays where it is, and the next bytes go into memory of their own. */
  #memory: Buffer = Buffer.alloc(0);
  #begin = 0;
  #end = 0;
  #ended = false;
  /** What cutting has learned of the bytes that are taken next. */
  #measured: { length: number; rows: number; lines: number } | undefined;
  /** Line of the file at which the buffer begins, from 1. */
  line = 1;

  constructor(source: ByteSource, options: LineReaderOptions) {
    this.#source = source;
    this.#options = options;
  }

  async skipByteOrderMark(): Promise<void> {
    await this.#fill(3);
    if (this.#buffer.subarray(0, 3).equals(Buffer.from([0xef, 0xbb, 0xbf]))) this.#drop(3);
  }

  async takeHeader(): Promise<Buffer> {
    if (!(await this.skipBlankLines())) return Buffer.alloc(0);
    const header = Buffer.from(await this.peekLine());
    this.take(header.length);
    return header;
  }

  /** Moves to the next byte that begins a line with content; false at the end of the file. */
  async skipBlankLines(): Promise<boolean> {
    for (;;) {
      await this.#fill(1);
      if (this.#buffer.length === 0) return false;
      let blank = 0;
      for (; blank < this.#buffer.length; blank++) {
        const byte = this.#buffer[blank];
        if (byte === newline) this.line++;
        else if (byte !== carriageReturn) break;
      }
      this.#drop(blank);
      if (this.#buffer.length > 0) return true;
    }
  }

  /** The line that begins here, without its end. */
  async peekLine(): Promise<Buffer> {
    const end = await this.#lineEnd();
    return this.#buffer.subarray(0, trimEnd(this.#buffer, end));
  }

  /** The next `length` bytes if they end where a line ends, else undefined. */
  async peekLines(length: number): Promise<Buffer | undefined> {
    await this.#fill(length + 1);
    const next = this.#buffer[length];
    const whole = this.#buffer.length >= length && (next === undefined || isLineEnd(next));
    return whole ? this.#buffer.subarray(0, length) : undefined;
  }

  /** Bytes of as many whole lines as fit into `limit`, at least one. */
  async lengthOfLines(limit: number): Promise<number> {
    await this.#fill(limit);
    if (this.#buffer.length < limit) return this.#lengthOfRest();
    const inQuotes = this.#options.csv && hasQuote(this.#buffer, limit);
    const scanned = inQuotes ? scanRecords(this.#buffer, 0, limit) : undefined;
    if (scanned && scanned.last > 0) {
      const { last, records, lines } = scanned;
      const length = trimEnd(this.#buffer, last);
      this.#measured = {
        length,
        rows: records,
        lines: lines - count(this.#buffer.subarray(length, last + 1)),
      };
      return length;
    }
    // A quote that is never closed must not swallow the file: its line is left to be examined.
    const cut = this.#buffer.lastIndexOf(newline, limit - 1);
    const end = cut > 0 ? cut : await this.#lineEnd();
    return trimEnd(this.#buffer, end);
  }

  /**
   * All that is left of the file. A last line without an end may be one that is still being written: it is left
   * for a chunk of its own, so that the lines before it are known again when the file has grown.
   */
  #lengthOfRest(): number {
    const rest = this.#buffer;
    if (isLineEnd(rest.at(-1))) return trimEnd(rest, rest.length);
    const inQuotes = this.#options.csv && hasQuote(rest, rest.length);
    const end = inQuotes ? scanRecords(rest, 0, rest.length).last : rest.lastIndexOf(newline);
    return end > 0 ? trimEnd(rest, end) : rest.length;
  }

  /** The next bytes, and how many rows they hold. */
  take(length: number): { body: Buffer; rows: number } {
    const body = this.#buffer.subarray(0, length);
    // Cutting has counted already, where it had to look at every byte.
    const { rows, lines } = this.#measured?.length === length ? this.#measured : this.#measure(body);
    this.#measured = undefined;
    this.line += lines;
    this.#drop(length);
    return { body, rows };
  }

  #measure(body: Buffer): { rows: number; lines: number } {
    if (!this.#options.csv || !hasQuote(body, body.length)) return countLines(body);
    const { last, records, lines } = scanRecords(body, 0, body.length);
    return { rows: records + 1, lines: lines + count(body.subarray(last + 1)) };
  }

  /** Position of the end of the line that begins here. */
  async #lineEnd(): Promise<number> {
    for (let size = 1 << 16; ; size *= 2) {
      await this.#fill(size);
      const end = this.#buffer.indexOf(newline);
      if (end >= 0) return end;
      if (this.#ended) return this.#buffer.length;
      if (this.#buffer.length > maxLineBytes) {
        throw new InputError(
          `${this.#options.file} line ${this.line}: no line end within ${maxLineBytes >> 20} MiB; is the file one event a line?`,
        );
      }
    }
  }

  get #buffer(): Buffer {
    return this.#memory.subarray(this.#begin, this.#end);
  }

  async #fill(size: number): Promise<void> {
    if (this.#begin + size > this.#memory.length && !this.#ended) {
      const memory = Buffer.allocUnsafeSlow(size + aheadBytes);
      this.#end = this.#memory.copy(memory, 0, this.#begin, this.#end);
      this.#begin = 0;
      this.#memory = memory;
    }
    while (this.#end - this.#begin < size && !this.#ended) {
      const bytes = await this.#source.read(this.#memory.subarray(this.#end));
      this.#end += bytes;
      this.#ended = bytes === 0;
    }
  }

  #drop(length: number): void {
    this.#begin += length;
  }
}

function trimEnd(buffer: Buffer, length: number): number {
  let end = length;
  while (end > 0 && isLineEnd(buffer[end - 1])) end--;
  return end;
}

function count(buffer: Buffer): number {
  let found = 0;
  for (let at = buffer.indexOf(newline); at >= 0; at = buffer.indexOf(newline, at + 1)) found++;
  return found;
}

/** Lines with content, and line ends. */
function countLines(body: Buffer): { rows: number; lines: number } {
  let rows = 1;
  let lines = 0;
  for (let at = body.indexOf(newline); at >= 0; at = body.indexOf(newline, at + 1)) {
    lines++;
    if (!isLineEnd(body[at + 1])) rows++;
  }
  return { rows, lines };
}

function hasQuote(buffer: Buffer, limit: number): boolean {
  const at = buffer.indexOf(quote);
  return at >= 0 && at < limit;
}

function isLineEnd(byte: number | undefined): boolean {
  return byte === newline || byte === carriageReturn;
}
