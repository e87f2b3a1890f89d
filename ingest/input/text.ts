export const lineFeed = 10;
export const carriageReturn = 13;
const oneLineFeed = Buffer.from('\n');
const oneCarriageReturn = Buffer.from('\r');

/** Encodings other than Unicode, by the names that TextDecoder knows them by. */
const encodings = [
  ...Array.from({ length: 9 }, (_, n) => `windows-125${n}`),
  ...[2, 3, 4, 5, 6, 7, 8, 10, 13, 14, 15].map((n) => `iso-8859-${n}`),
  ...['windows-874', 'koi8-r', 'koi8-u', 'ibm866', 'macintosh', 'x-mac-cyrillic'],
  ...['shift_jis', 'euc-jp', 'iso-2022-jp', 'gbk', 'gb18030', 'big5', 'euc-kr'],
] as const;

/** The name by which TextDecoder knows an encoding; undefined where it knows none: `latin1` is `windows-1252`. */
export function encodingNamed(name: string): string | undefined {
  try {
    return new TextDecoder(name).encoding;
  } catch {
    return undefined;
  }
}

/** What is said of a name that no encoding has. */
export function noEncoding(given: string): string {
  return `${given} is no encoding; there are ${['utf-8', 'utf-16le', 'utf-16be', ...encodings].join(', ')}`;
}

/**
 * Text as UTF-8. A character may be spread over two pieces.
 * @throws {TypeError} (`ERR_ENCODING_INVALID_ENCODED_DATA`) for bytes that are no character, or half of one
 */
export async function* toUtf8(pieces: AsyncIterable<Buffer>, encoding: string): AsyncGenerator<Buffer> {
  const decoder = new TextDecoder(encoding, { fatal: true, ignoreBOM: true });
  for await (const piece of pieces) yield Buffer.from(decoder.decode(piece, { stream: true }));
  yield Buffer.from(decoder.decode());
}

/**
 * Turns every CR into an LF that is not followed by one, also inside quotes. CRLF and LF stay as they are. The pieces
 * are changed in place.
 */
export async function* crToLf(pieces: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  let endedWithCr = false;
  for await (const piece of pieces) {
    // Only now is it known what followed that CR.
    if (endedWithCr) yield piece[0] === lineFeed ? oneCarriageReturn : oneLineFeed;
    endedWithCr = piece.at(-1) === carriageReturn;
    const body = endedWithCr ? piece.subarray(0, -1) : piece;
    for (let at = body.indexOf(carriageReturn); at >= 0; at = body.indexOf(carriageReturn, at + 1)) {
      if (body[at + 1] !== lineFeed) body[at] = lineFeed;
    }
    yield body;
  }
  if (endedWithCr) yield oneLineFeed;
}
