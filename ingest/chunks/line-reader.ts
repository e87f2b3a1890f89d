import type { ByteSource } from '../input/byte-source.ts';
import { InputError } from '../input/input-error.ts';
import { optionHint } from '../input/option-hint.ts';
import {
  type Counted,
  type CountedStart,
  isLineEnd,
  linesIn,
  recordsIn,
  trimEnd,
  wholeRecords,
} from './count-records.ts';
import { maxQuotedBytes, newline, quote, scanRecords } from './csv/records.ts';
import { ReadMemory } from './read-memory.ts';

interface LineReaderOptions {
  /** For messages. */
  readonly file: string;
  /** Of CSV, in which quoted cells may hold line ends: the byte between cells. */
  readonly csvDelimiter?: number;
  /** The text will not grow. */
  readonly isWhole?: boolean;
}

/** Bytes that are taken, and what was counted in them. */
interface TakenLines extends Omit<Counted, 'lines'> {
  /** Valid until more is read, or while they are held. */
  readonly bytes: Buffer;
  /** Keeps the bytes in memory until the release. */
  readonly hold: () => () => void;
}

/** A single line longer than this is not an event. */
const maxLineBytes = 16 << 20;

/**
 * A piece of a text has no more records, and a chunk ends behind the piece that brings it to so many. What a record costs falls with
 * those that are grouped beside it in the rollups, and what ClickHouse needs of memory grows with them: a chunk of 16 MiB in lines of
 * two bytes, which were all rejected, took 4.9 GB.
 */
export const enoughRecords = 500_000;

/** Read beyond what was asked for, so that the next line, or the end of a quoted cell, is there as well. */
const aheadBytes = maxQuotedBytes + (1 << 16);

/** Bytes that have been read but not yet taken, and where in the file they begin. */
export class LineReader {
  readonly #source: ByteSource;
  readonly #options: LineReaderOptions;
  /** What is taken stays where it is, and the bytes behind it move to other memory. */
  readonly #memory = new ReadMemory();
  #begin = 0;
  #end = 0;
  #ended = false;
  /** Of the bytes that `lengthOfRecords` has just found, so that `take` need not look at each of them again. */
  #counted: CountedStart | undefined;
  /** Line of the text at which the buffer begins, from 1. */
  line = 1;
  /** Bytes of the text before the buffer. */
  position = 0;

  constructor(source: ByteSource, options: LineReaderOptions) {
    this.#source = source;
    this.#options = options;
  }

  async skipLine(): Promise<void> {
    const end = await this.#lineEnd();
    this.#drop(Math.min(end + 1, this.#buffer.length));
    this.line++;
  }

  /** Moves behind so many lines with content, or to the end of the text. */
  async skipLines(count: number): Promise<void> {
    for (let left = count; left > 0 && (await this.skipBlankLines()); ) {
      const length = (await this.lengthOfRecords(aheadBytes)) || (await this.lengthOfRecord(aheadBytes));
      const skipped = linesIn(this.#buffer.subarray(0, length), left);
      await this.take(skipped.length);
      left -= skipped.rows;
    }
  }

  async takeHeader(): Promise<Buffer> {
    if (!(await this.skipBlankLines())) return Buffer.alloc(0);
    const header = Buffer.from(await this.peekRecord());
    await this.take(header.length);
    return header;
  }

  /** Moves to the next byte that begins a line with content; false at the end of the file. */
  async skipBlankLines(): Promise<boolean> {
    for (let size = 1; ; size = this.#buffer.length + 1) {
      await this.#fill(size);
      let blank = 0;
      let at = 0;
      // Carriage returns before anything else than a line end belong to the line.
      for (; isLineEnd(this.#buffer[at]); at++) {
        if (this.#buffer[at] !== newline) continue;
        this.line++;
        blank = at + 1;
      }
      const found = at < this.#buffer.length;
      this.#drop(found || !this.#ended ? blank : at);
      if (found || this.#ended) return found;
    }
  }

  /** The line that begins here, without its end. */
  async peekLine(): Promise<Buffer> {
    const end = await this.#lineEnd();
    return this.#buffer.subarray(0, trimEnd(this.#buffer, end));
  }

  /** The record that begins here, without its end. */
  async peekRecord(): Promise<Buffer> {
    const end = await this.#recordEnd(1 << 16);
    return this.#buffer.subarray(0, trimEnd(this.#buffer, end));
  }

  /** The next `length` bytes if they end where a line ends, else undefined. */
  async peekLines(length: number): Promise<Buffer | undefined> {
    await this.#fill(length + 1);
    const next = this.#buffer[length];
    const whole = this.#buffer.length >= length && (next === undefined || isLineEnd(next));
    return whole ? this.#buffer.subarray(0, length) : undefined;
  }

  /**
   * Bytes of as many whole records as fit into `limit`, but no more than are enough; 0 where none fits. In a text that may grow a
   * last line without an end may be one that is still being written: it is left for a chunk of its own, so that those before it
   * are known then.
   */
  async lengthOfRecords(limit: number): Promise<number> {
    await this.#fill(limit);
    const size = Math.min(limit, this.#buffer.length);
    const endsHere = this.#options.isWhole || isLineEnd(this.#buffer[size - 1]);
    const end = size < limit && endsHere ? size : this.#endOfRecords(size);
    if (end <= 0) return 0;
    const found = this.#buffer.subarray(0, trimEnd(this.#buffer, end));
    this.#counted = this.#countedIn(found, enoughRecords);
    return this.#counted.length;
  }

  /** Bytes of the record that begins here, which ends beyond the limit, or with the file and without a line end. */
  async lengthOfRecord(limit: number): Promise<number> {
    if (this.#buffer.length < limit) return this.#buffer.length;
    return trimEnd(this.#buffer, await this.#recordEnd(limit + maxQuotedBytes));
  }

  /** Position of the end of the record that begins here, which is looked for in so many bytes first. */
  async #recordEnd(bytes: number): Promise<number> {
    const line = await this.#lineEnd();
    if (!this.#quotedWithin(line)) return line;
    // A record may hold several long cells in quotes.
    for (let size = bytes; ; size *= 2) {
      await this.#fill(size);
      let first = -1;
      scanRecords(this.#buffer, 0, this.#buffer.length, {
        delimiter: this.#options.csvDelimiter ?? 0,
        final: this.#ended,
        onRecord: (_start, end) => {
          if (first < 0) first = end;
        },
      });
      if (first > 0) return first;
      if (this.#ended) return this.#buffer.length;
      if (this.#buffer.length > maxLineBytes) throw this.#endless('record');
    }
  }

  /** Position of the last line end within the limit that ends a record; −1 where no record ends. */
  #endOfRecords(limit: number): number {
    const buffer = this.#buffer;
    if (!this.#quotedWithin(limit)) return buffer.lastIndexOf(newline, limit - 1);
    const delimiter = this.#options.csvDelimiter ?? 0;
    const final = this.#ended && limit === buffer.length;
    const found = scanRecords(buffer, 0, limit, { delimiter, final, most: enoughRecords });
    if (found.last > 0) this.#counted = wholeRecords(buffer, found);
    return found.last;
  }

  #quotedWithin(limit: number): boolean {
    if (this.#options.csvDelimiter === undefined) return false;
    const at = this.#buffer.indexOf(quote);
    return at >= 0 && at < limit;
  }

  /** The next bytes, which end where a record does. */
  async take(length: number): Promise<TakenLines> {
    await this.#fill(length);
    const bytes = this.#buffer.subarray(0, length);
    const { lines, ...counted } = this.#countedIn(bytes);
    this.line += lines;
    this.#drop(length);
    return { ...counted, bytes, hold: () => this.#memory.hold() };
  }

  /** @param most no more records are counted */
  #countedIn(body: Buffer, most?: number): CountedStart {
    if (this.#counted?.length === body.length) return this.#counted;
    if (!this.#quotedWithin(body.length)) return linesIn(body, most);
    return recordsIn(body, this.#options.csvDelimiter ?? 0, most);
  }

  /** Position of the end of the line that begins here. */
  async #lineEnd(): Promise<number> {
    for (let size = 1 << 16; ; size *= 2) {
      await this.#fill(size);
      const end = this.#buffer.indexOf(newline);
      if (end >= 0) return end;
      if (this.#ended) return this.#buffer.length;
      if (this.#buffer.length > maxLineBytes) throw this.#endless('line');
    }
  }

  #endless(what: 'line' | 'record'): InputError {
    return new InputError(
      `${this.#options.file} line ${this.line}: no ${what} end within ${maxLineBytes >> 20} MiB; is the file one event a line?${optionHint('records', 'names the array of a JSON object')}`,
    );
  }

  get #buffer(): Buffer {
    return this.#memory.bytes.subarray(this.#begin, this.#end);
  }

  async #fill(size: number): Promise<void> {
    while (this.#end - this.#begin < size && !this.#ended) {
      if (this.#end === this.#memory.bytes.length) {
        const enough = this.#wanted(size);
        const wanted = enough > this.#end - this.#begin ? enough : size;
        const isThere = this.#source.size !== undefined;
        this.#end = this.#memory.move(this.#begin, this.#end, wanted, isThere);
        this.#begin = 0;
      }
      const bytes = await this.#source.read(this.#memory.bytes.subarray(this.#end));
      this.#end += bytes;
      this.#ended = bytes === 0;
    }
  }

  /** No more than there is, and a byte to see its end: memory that is not used would keep the garbage collector at work. */
  #wanted(size: number): number {
    const left = (this.#source.size ?? Number.POSITIVE_INFINITY) - this.position;
    return Math.min(size + aheadBytes, left + 1);
  }

  #drop(length: number): void {
    this.#begin += length;
    this.position += length;
    this.#counted = undefined;
  }
}
