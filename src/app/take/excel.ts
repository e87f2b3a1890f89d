import { text } from '../text.ts';

/** Characters with which a spreadsheet takes a cell for a formula. */
const formula = /^[=+\-@\t\r]/;

/**
 * CSV that a spreadsheet opens without running anything of it: a text that begins like a formula gets an apostrophe
 * in front. A mark at the start says that the file is UTF-8; the last row has the totals, which stand in the last columns.
 */
export function excelSafe(
  csv: ReadableStream<Uint8Array<ArrayBuffer>>,
  totals: readonly string[],
): ReadableStream<Uint8Array> {
  const guard = new CellGuard();
  let head = '';
  const through = new TransformStream<string, string>({
    start: (controller) => controller.enqueue('\ufeff'),
    transform(chunk, controller) {
      if (!head.includes('\n')) head += chunk;
      controller.enqueue(guard.push(chunk));
    },
    flush(controller) {
      const columns = (head.split('\n')[0] ?? '').split(',').length;
      const blank = Array.from({ length: columns - totals.length - 1 }, () => '');
      controller.enqueue(`${[`"${text.table.total}"`, ...blank, ...totals].join(',')}\n`);
    },
  });
  const decoded = csv.pipeThrough(
    new TextDecoderStream() as TransformStream<Uint8Array<ArrayBuffer>, string>,
  );
  return decoded.pipeThrough(through).pipeThrough(new TextEncoderStream());
}

/** Guards quoted cells, which are those of texts; numbers stand without quotes. Text comes in pieces cut anywhere. */
export class CellGuard {
  private quoted = false;
  /** The last character opened a quoted cell. */
  private opened = false;

  push(piece: string): string {
    let out = '';
    let from = 0;
    // From quote to quote: everything between is copied at once.
    for (let at = 0; at < piece.length; ) {
      if (this.opened && formula.test(piece.slice(at, at + 1))) {
        out += `${piece.slice(from, at)}'`;
        from = at;
      }
      this.opened = false;
      const quote = piece.indexOf('"', at);
      if (quote < 0) break;
      // A doubled quote within a cell closes it and opens it again, which changes nothing but must not count as a start.
      this.opened = !this.quoted && !this.closedAt(quote, piece);
      this.quoted = !this.quoted;
      at = quote + 1;
    }
    this.lastWasQuote = piece.endsWith('"');
    return out + piece.slice(from);
  }

  private lastWasQuote = false;

  private closedAt(quote: number, piece: string): boolean {
    return quote > 0 ? piece[quote - 1] === '"' : this.lastWasQuote;
  }
}
