const [lineFeed, carriageReturn, quote, comma] = [0x0a, 0x0d, 0x22, 0x2c];

/**
 * The same text without its empty lines, which are no records. Those in quoted cells stay.
 * @param quotes whether cells may be quoted
 */
export async function* withoutEmptyLines(
  text: AsyncIterable<Uint8Array>,
  quotes: boolean,
): AsyncGenerator<Uint8Array> {
  let before = lineFeed;
  let inQuotes = false;
  for await (const piece of text) {
    const kept = new Uint8Array(piece.length);
    let length = 0;
    for (const byte of piece) {
      const isEmpty = !inQuotes && before === lineFeed && (byte === lineFeed || byte === carriageReturn);
      if (isEmpty) continue;
      if (quotes && byte === quote) {
        // A second quote in a row, too, opens it again.
        inQuotes = !inQuotes && (before === lineFeed || before === comma || before === quote);
      }
      before = byte;
      kept[length++] = byte;
    }
    yield kept.subarray(0, length);
  }
}
