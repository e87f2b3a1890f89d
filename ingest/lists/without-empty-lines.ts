const [lineFeed, carriageReturn, quote] = [0x0a, 0x0d, 0x22];

/**
 * The same text without its empty lines, which are no records. Those in quoted cells stay.
 * @param delimiter between cells that may be quoted; absent: quotes mean nothing
 */
export async function* withoutEmptyLines(
  text: AsyncIterable<Uint8Array>,
  delimiter: string | undefined,
): AsyncGenerator<Uint8Array> {
  const between = delimiter?.charCodeAt(0);
  let before = lineFeed;
  let inQuotes = false;
  for await (const piece of text) {
    const kept = new Uint8Array(piece.length);
    let length = 0;
    for (const byte of piece) {
      const isEmpty = !inQuotes && before === lineFeed && (byte === lineFeed || byte === carriageReturn);
      if (isEmpty) continue;
      if (between !== undefined && byte === quote) {
        // A second quote in a row, too, opens it again.
        inQuotes = !inQuotes && (before === lineFeed || before === between || before === quote);
      }
      before = byte;
      kept[length++] = byte;
    }
    yield kept.subarray(0, length);
  }
}
