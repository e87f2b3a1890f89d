import { InputError } from './input-error.ts';
import { optionHint } from './option-hint.ts';
import { headBytes } from './pieces.ts';
import { shownNames } from './similar-names.ts';

/** Names of members, one in the other, that lead to an array of records; none: the text is the array. */
export type RecordsPath = readonly string[];

const [tab, lineFeed, carriageReturn, space] = [9, 10, 13, 32];
const [quote, comma, colon, backslash] = [34, 44, 58, 92];
const [openArray, closeArray, openObject, closeObject] = [91, 93, 123, 125];
/** Names that a message shows. */
const mostNames = 20;
/** More members than anybody asks about, which 64 KiB have. Of a line of 64 MiB all names take 16 s, in which a service does nothing else. */
const mostMembers = headBytes;
/** A longer name is none that anybody asks for. */
const mostNameBytes = 1 << 10;

const isBlank = (byte: number | undefined) =>
  byte === space || byte === lineFeed || byte === carriageReturn || byte === tab;

/** A 1 for each byte that means nothing within a string. */
const inString = new Uint8Array(256).fill(1);
for (const byte of [quote, backslash, lineFeed]) inString[byte] = 0;
/** A 1 for each byte that means nothing outside of strings and within a record. */
const inRecord = new Uint8Array(256).fill(1);
for (const byte of [quote, openArray, closeArray, openObject, closeObject, comma, lineFeed])
  inRecord[byte] = 0;

/**
 * The elements of an array as NDJSON, one on each line and as they are written, with the blanks around them: the n-th line is the n-th element, whatever it
 * is. Line ends within an element become tabs, which mean as little between values and are as forbidden in strings. With
 * a path there may be several answers, one after another or as the elements of an array. The pieces are changed in place.
 * @throws {InputError} without the file's name, where the text ends too early, goes on behind its end, or has no such array;
 * what came before may have been passed on then
 */
export async function* recordsOfArray(
  pieces: AsyncIterable<Buffer>,
  path: RecordsPath,
): AsyncGenerator<Buffer> {
  const cutter = new ArrayCutter(path);
  for await (const piece of pieces) yield* cutter.push(piece);
  cutter.end();
}

class ArrayCutter {
  readonly #path: RecordsPath;
  /** Between texts, looking for the array, in it, or behind it. */
  #place: 'between' | 'before' | 'records' | 'behind' = 'between';
  #texts = 0;
  /** The answers are the elements of an array, which is open, or has been closed. */
  #list: 'none' | 'open' | 'closed' = 'none';
  #records = 0;
  /** Containers that are open; in the array, those of the element. */
  #depth = 0;
  #inString = false;
  #escaped = false;
  /** How much of the path leads here; the object that it leads to is the innermost if `depth` is one more. */
  #found = 0;
  /** Members of that object. */
  #names: string[] = [];
  /** A name begins, is read, or was the one that is looked for. */
  #name: 'next' | 'read' | 'found' | 'other' = 'next';
  #nameBytes: number[] = [];
  /** Whether an element has begun since the last comma, and whether there was one. */
  #element = false;
  #comma = false;

  constructor(path: RecordsPath) {
    this.#path = path;
  }

  /** What of a piece is lines. */
  push(piece: Buffer): Buffer[] {
    const lines: Buffer[] = [];
    let start = this.#place === 'records' && (this.#element || this.#comma) ? 0 : -1;
    for (let at = 0; at < piece.length; at++) {
      if (this.#inString) {
        at = this.#passString(piece, at);
        continue;
      }
      if (this.#place !== 'records') {
        this.#step(piece[at] as number);
        continue;
      }
      if (this.#element) while (inRecord[piece[at] as number] === 1 && at < piece.length - 1) at++;
      const byte = piece[at] as number;
      if (byte === lineFeed) piece[at] = tab;
      if (isBlank(byte)) continue;
      if (this.#depth === 0 && (byte === comma || byte === closeArray)) {
        if (!this.#element && (byte === comma || this.#comma))
          throw new InputError(`nothing stands behind the comma after record ${this.#records}`);
        piece[at] = lineFeed;
        this.#comma = byte === comma;
        this.#element = false;
        if (byte === comma) continue;
        if (start >= 0) lines.push(piece.subarray(start, at + 1));
        start = -1;
        // The objects on the path are open still.
        this.#depth = this.#path.length;
        this.#place = this.#depth === 0 ? 'between' : 'behind';
        continue;
      }
      if (!this.#element) {
        this.#records++;
        this.#element = true;
        if (start < 0) start = at;
      }
      if (byte === quote) this.#inString = true;
      else if (byte === openArray || byte === openObject) this.#depth++;
      else if (byte === closeArray || byte === closeObject) this.#depth--;
      if (this.#depth < 0)
        throw new InputError(`a bracket that nothing opened closes record ${this.#records}`);
    }
    if (start >= 0) lines.push(piece.subarray(start));
    return lines;
  }

  /** @throws {InputError} where the text is not whole */
  end(): void {
    if (this.#place === 'between' && this.#list !== 'open') return;
    throw new InputError(
      `the JSON ends too early${this.#records > 0 ? `, behind or within record ${this.#records}` : ''}: it is truncated`,
    );
  }

  /** Goes on to the end of a string, or of the piece. */
  #passString(piece: Buffer, from: number): number {
    const isName = this.#name === 'read';
    for (let at = from; at < piece.length; at++) {
      if (!isName && !this.#escaped) {
        while (inString[piece[at] as number] === 1 && at < piece.length - 1) at++;
      }
      const byte = piece[at] as number;
      if (byte === lineFeed) piece[at] = tab;
      if (byte === quote && !this.#escaped) {
        this.#inString = false;
        if (isName) this.#endName();
        return at;
      }
      if (isName && this.#nameBytes.length < mostNameBytes) this.#nameBytes.push(byte);
      this.#escaped = byte === backslash && !this.#escaped;
    }
    return piece.length;
  }

  /** A byte outside of the array and of strings. */
  #step(byte: number): void {
    if (isBlank(byte)) return;
    const looks = this.#depth === this.#found + 1;
    if (this.#place === 'between') this.#beginText(byte);
    else if (looks && this.#name === 'found' && byte !== colon) this.#enter(byte);
    else if (byte === quote) {
      this.#inString = true;
      if (looks && this.#name === 'next') [this.#name, this.#nameBytes] = ['read', []];
    } else if (byte === comma && looks) this.#name = 'next';
    else if (byte === openArray || byte === openObject) this.#depth++;
    else if (byte === closeArray || byte === closeObject) {
      this.#depth--;
      if (looks && this.#place === 'before') throw this.#notFound(`there is no ${this.#member()}`);
      if (looks) this.#found--;
      if (this.#depth === 0) this.#place = 'between';
    }
  }

  #beginText(byte: number): void {
    if (this.#path.length > 0 && this.#texts === 0 && this.#list === 'none' && byte === openArray) {
      this.#list = 'open';
      return;
    }
    if (this.#list === 'open' && !this.#comma && byte === closeArray) {
      this.#list = 'closed';
      return;
    }
    if (this.#list === 'open' && !this.#comma && byte === comma && this.#texts > 0) {
      this.#comma = true;
      return;
    }
    const follows =
      this.#list === 'none'
        ? this.#path.length > 0 && byte === openObject
        : this.#list === 'open' && this.#comma;
    if (this.#list === 'closed' || (this.#texts++ > 0 && !follows)) {
      throw new InputError(`more follows behind the end of the JSON, after record ${this.#records}`);
    }
    this.#comma = false;
    if (this.#path.length === 0) {
      this.#beginArray();
      return;
    }
    if (byte !== openObject) {
      const what = this.#list === 'none' ? 'the file is' : 'an element of the array is';
      throw new InputError(`records ${this.#path.join('.')}: ${what} no JSON object`);
    }
    [this.#place, this.#depth, this.#found, this.#names, this.#name] = ['before', 1, 0, [], 'next'];
  }

  #endName(): void {
    const bytes = Buffer.from(this.#nameBytes).toString();
    let name = bytes;
    try {
      name = String(JSON.parse(`"${bytes}"`));
    } catch {
      // A name that is not JSON is none that was asked for.
    }
    if (this.#names.length < mostNames) this.#names.push(name);
    this.#name = name === this.#path[this.#found] ? 'found' : 'other';
    // Behind the array each name of the path has been there.
    if (this.#name === 'found' && this.#place === 'behind') {
      throw new InputError(`records ${this.#path.join('.')}: ${this.#member()} appears twice in one object`);
    }
  }

  /** The value of the name that was looked for begins. */
  #enter(byte: number): void {
    const isLast = this.#found === this.#path.length - 1;
    if (byte !== (isLast ? openArray : openObject)) {
      throw this.#notFound(`${this.#member()} is no ${isLast ? 'array' : 'object'}`);
    }
    if (isLast) {
      this.#beginArray();
      return;
    }
    this.#found++;
    [this.#depth, this.#names, this.#name] = [this.#depth + 1, [], 'next'];
  }

  #beginArray(): void {
    [this.#place, this.#depth, this.#name] = ['records', 0, 'other'];
    [this.#element, this.#comma] = [false, false];
  }

  #member(): string {
    return this.#path.slice(0, this.#found + 1).join('.');
  }

  #notFound(what: string): InputError {
    const names = this.#names.length > 0 ? `; the members there are ${shownNames(this.#names)}` : '';
    const hint = this.#list === 'none' ? '' : '. If the elements of the array are the records, leave it out';
    return new InputError(`records ${this.#path.join('.')}: ${what}${names}${hint}`);
  }
}

/** Whether a text begins with an array. */
export function beginsWithArray(head: Buffer): boolean {
  return head[head.findIndex((byte) => !isBlank(byte))] === openArray;
}

/**
 * Refuses an object that is written over several lines and has an array, or no member at all on its first line: it is no
 * record on a line, and the array may be one of records.
 * @throws {InputError} without the file's name
 */
export function refuseObjectOfLines(head: Buffer): void {
  const { end, depth, arrays, last } = firstObject(head);
  const next = head[head.findIndex((byte, at) => at > end && !isBlank(byte))];
  // A line that was cut off is followed by the next record.
  if (depth === 0 || head[end] !== lineFeed || (next === openObject && last !== openArray)) return;
  const [array] = arrays.length > 0 ? arrays : firstObject(head, false).arrays;
  throw new InputError(
    `the first line is no whole record. Write one record a line${array === undefined ? '' : optionHint('records', 'reads the elements of that array', array)}`,
  );
}

/**
 * What is known of the object that a text begins with, up to the end of its line or its own: the names of its members and which of
 * them are arrays, where that end is, how many brackets are open there, and the last byte before.
 */
export function firstObject(text: Buffer, onOneLine = true) {
  const names: string[] = [];
  const arrays: string[] = [];
  let [depth, last, at] = [0, 0, 0];
  for (; at < text.length; at++) {
    const byte = text[at] as number;
    if (byte === lineFeed && onOneLine && last !== 0) break;
    if (isBlank(byte)) continue;
    if (last === 0 && byte !== openObject) break;
    if (byte === quote) {
      const start = at;
      for (at++; at < text.length && text[at] !== quote; at++) if (text[at] === backslash) at++;
      if (depth === 1 && last !== colon && names.length < mostMembers)
        names.push(text.toString('utf8', start + 1, at));
    } else if (byte === openArray || byte === openObject) {
      if (byte === openArray && depth === 1 && last === colon && names.length < mostMembers)
        arrays.push(names.at(-1) ?? '');
      depth++;
    } else if ((byte === closeArray || byte === closeObject) && --depth === 0) break;
    last = byte;
  }
  return { names, arrays, depth, last, end: at };
}
