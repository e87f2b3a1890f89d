const lineFeed = 10;
const carriageReturn = 13;
const oneLineFeed = Buffer.from('\n');
const oneCarriageReturn = Buffer.from('\r');

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
  return `${given} is no encoding; give one that browsers know, such as utf-8, windows-1252, iso-8859-2, koi8-r, shift_jis or gb18030`;
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

/** What a text says as JSON; undefined where it is no JSON. */
export function jsonIn(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
