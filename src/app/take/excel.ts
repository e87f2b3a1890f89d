import { text } from '../text.ts';

/** Characters with which a spreadsheet takes a cell for a formula. */
const formula = /^[=+\-@\t\r]/;

/** Where the decimal point is a comma, spreadsheets read cells between semicolons. */
const isCommaDecimal = (locale: string): boolean =>
  new Intl.NumberFormat(locale)
    .formatToParts(1.5)
    .some(({ type, value }) => type === 'decimal' && value === ',');

/**
 * CSV that a spreadsheet opens without running anything of it: a text that begins like a formula gets an apostrophe
 * in front. A mark at the start says that the file is UTF-8; the last row has the totals, which stand in the last columns.
 * Decimals and what is between cells are those of the locale.
 */
export function excelSafe(
  csv: ReadableStream<Uint8Array<ArrayBuffer>>,
  totals: readonly string[],
  locale: string,
): ReadableStream<Uint8Array> {
  const guard = new CellGuard(isCommaDecimal(locale));
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
      controller.enqueue(guard.push(`${[`"${text.table.total}"`, ...blank, ...totals].join(',')}\n`));
    },
  });
  const decoded = csv.pipeThrough(
    new TextDecoderStream() as TransformStream<Uint8Array<ArrayBuffer>, string>,
  );
  return decoded.pipeThrough(through).pipeThrough(new TextEncoderStream());
}

/** Guards quoted cells, which are those of texts; numbers stand without quotes. Text comes in pieces cut anywhere. */
export class CellGuard {
  private readonly commaDecimal: boolean;
  private quoted = false;
  /** The last character opened a quoted cell. */
  private opened = false;

  constructor(commaDecimal = false) {
    this.commaDecimal = commaDecimal;
  }

  push(piece: string): string {
    let out = '';
    // From quote to quote: everything between is copied at once.
    for (let at = 0; at < piece.length; ) {
      if (this.opened && formula.test(piece.slice(at, at + 1))) out += "'";
      this.opened = false;
      const quote = piece.indexOf('"', at);
      const end = quote < 0 ? piece.length : quote + 1;
      const part = piece.slice(at, end);
      out += this.quoted || !this.commaDecimal ? part : part.replaceAll(',', ';').replaceAll('.', ',');
      at = end;
      if (quote < 0) break;
      // A doubled quote within a cell closes it and opens it again, which changes nothing but must not count as a start.
      this.opened = !this.quoted && !this.closedAt(quote, piece);
      this.quoted = !this.quoted;
    }
    this.lastWasQuote = piece.endsWith('"');
    return out;
  }

  private lastWasQuote = false;

  private closedAt(quote: number, piece: string): boolean {
    return quote > 0 ? piece[quote - 1] === '"' : this.lastWasQuote;
  }
}
