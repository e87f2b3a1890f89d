import { decimalText, type Figure } from '../arrow/decimal.ts';
import { type Metric, partOf } from '../state/fields.ts';
import { type Language, languageOf } from '../words/languages.ts';

/** What stands behind a change of a share: `+2.2%` would be read as 2.2% of the share. */
const points: Record<Language, string> = { en: ' pp', de: ' PP', ja: 'ポイント' };

/** Figures as a locale writes them, exact to the last digit. */
export class Figures {
  private readonly formats = new Map<string, Intl.NumberFormat>();
  private readonly metrics: ReadonlyMap<string, Metric>;
  private readonly locale: string;
  private readonly currency: string | undefined;

  /** @param currency a code that stands beside amounts of money */
  constructor(metrics: readonly Metric[], locale: string, currency?: string) {
    this.locale = locale;
    this.currency = currency;
    this.metrics = new Map(metrics.map((metric) => [metric.id, metric]));
  }

  /** Every digit. */
  whole(column: string, figure: Figure): string {
    const format = this.format(column, 'whole', () => ({
      minimumFractionDigits: this.digits(column, figure.scale),
      maximumFractionDigits: 6,
    }));
    return this.written(column, figure, format);
  }

  /** Of money the cents, of shares a tenth of a percent; every digit of less than a tenth of one, which would look like nothing. */
  short(column: string, figure: Figure): string {
    const { units, scale } = figure;
    const digits = this.digits(column, scale);
    const tenth = scale > 0 ? 10n ** BigInt(scale - (digits === 1 ? 3 : 1)) : 0n;
    const isSmall = units < tenth && units > -tenth;
    const format = this.format(column, isSmall ? 'small' : 'short', () => ({
      minimumFractionDigits: digits,
      maximumFractionDigits: isSmall ? 6 : digits,
    }));
    return this.written(column, figure, format);
  }

  /** Four digits and a unit, such as millions; whole where the language has no unit for it, as German for thousands. */
  compact(column: string, figure: Figure): string {
    const format = this.format(column, 'compact', () => ({
      notation: 'compact',
      maximumSignificantDigits: 4,
    }));
    const parts = format.formatToParts(decimalText(figure.units, figure.scale) as `${number}`);
    const hasUnit = parts.some(({ type }) => type === 'compact');
    return hasUnit ? parts.map(({ value }) => value).join('') : this.short(column, figure);
  }

  private written(column: string, { units, scale }: Figure, format: Intl.NumberFormat): string {
    // A string keeps every digit, which a number would not.
    const text = format.format(decimalText(units, scale) as `${number}`);
    const isOfShare = this.isShare(column) && partOf(column).part === 'change';
    return isOfShare ? text.replace(/\s?%/, points[languageOf(this.locale) ?? 'en']) : text;
  }

  private format(column: string, kind: string, options: () => Intl.NumberFormatOptions): Intl.NumberFormat {
    const key = `${kind} ${column}`;
    const known = this.formats.get(key);
    if (known) return known;
    const { metric, part } = partOf(column);
    const currency = this.metrics.get(metric)?.money ? this.currency : undefined;
    const made = new Intl.NumberFormat(this.locale, {
      ...(this.isShare(column) && { style: 'percent' }),
      ...(currency && { style: 'currency', currency, currencyDisplay: 'code' }),
      ...(part === 'change' && { signDisplay: 'exceptZero' }),
      ...options(),
    });
    this.formats.set(key, made);
    return made;
  }

  /** Behind the point, so that a column stands in line. */
  private digits(column: string, scale: number): number {
    if (scale === 0) return 0;
    return this.isShare(column) ? 1 : 2;
  }

  /** A ratio of counts, such as a fill rate: shown in percent. */
  isShare(column: string): boolean {
    const known = this.metrics.get(partOf(column).metric);
    return known?.ratio !== undefined && !known.money;
  }
}
