import { places } from '../app/arrow/decimal.ts';
import { Figures } from '../app/rows/figures.ts';
import { metricsOf, partOf } from '../app/state/fields.ts';
import { de, mails as deMails } from '../app/words/de.ts';
import { en, mails as enMails } from '../app/words/en.ts';
import { ja, mails as jaMails } from '../app/words/ja.ts';
import { type Language, languageOf } from '../app/words/languages.ts';

const languages = {
  en: { page: en, mails: enMails },
  de: { page: de, mails: deMails },
  ja: { page: ja, mails: jaMails },
} satisfies Record<Language, unknown>;

const wordOf = (words: Readonly<Record<string, string>>, id: string): string => words[id] ?? id;

/** Some builds of Node.js know English alone: its points and commas beside other words would be misread. */
export const knownOf = (locale: string): string => Intl.NumberFormat.supportedLocalesOf(locale)[0] ?? 'en';

/**
 * The words of mails and of columns, and how days and figures are written: those of the page.
 * @param given a language of the page, with a country or without: `de-CH`
 */
export function wordsOf(given: string) {
  const locale = knownOf(given);
  const { page, mails } = languages[languageOf(locale) ?? 'en'];
  const days = new Intl.DateTimeFormat(locale, { dateStyle: 'medium', timeZone: 'UTC' });
  const counts = new Intl.NumberFormat(locale);
  const column = (id: string): string => {
    const { metric, part } = partOf(id);
    const name = wordOf(page.columns, metric);
    return part === 'compared' ? page.compared(name) : part === 'change' ? page.change(name) : name;
  };
  return {
    ...mails,
    column,
    family: (id: string): string => wordOf(page.families, id),
    part: (id: string, grain: string): string =>
      id === 'date' ? wordOf(page.grains, grain) : wordOf(page.dimensions, id),
    /** Of one day or several: `yyyy-mm-dd` each. */
    days: (start: string, end = start): string =>
      start === end ? days.format(Date.parse(start)) : days.formatRange(Date.parse(start), Date.parse(end)),
    moment: (time: Date, timezone: string): string =>
      new Intl.DateTimeFormat(locale, { dateStyle: 'medium', timeStyle: 'short', timeZone: timezone }).format(
        time,
      ),
    list: (texts: readonly string[]): string => new Intl.ListFormat(locale).format(texts),
    count: (digits: string): string => counts.format(BigInt(digits)),
  };
}

export type WordsOfLocale = ReturnType<typeof wordsOf>;

/** Figures of a family of reports with every digit, as a locale writes them. @param currency of its money, where it is known */
export function figuresOf(family: string, given: string, currency?: string) {
  const locale = knownOf(given);
  const metrics = metricsOf(family);
  const money = new Set(metrics.flatMap((metric) => (metric.money ? [metric.id] : [])));
  const ratios = new Set(metrics.flatMap((metric) => (metric.ratio ? [metric.id] : [])));
  const write = (figures: Figures) => (column: string, digits: string) => {
    if (digits === '') return '';
    const { metric } = partOf(column);
    const [whole = '', fraction = ''] = digits.split('.');
    const scale = money.has(metric) || ratios.has(metric) ? places : 0;
    return figures.whole(column, { units: BigInt(whole + fraction.padEnd(scale, '0')), scale });
  };
  return {
    /** With the code of the currency. */
    total: write(new Figures(metrics, locale, currency)),
    /** Below a head that has it. */
    cell: write(new Figures(metrics, locale)),
    head: (column: string, label: string) =>
      currency && money.has(partOf(column).metric) ? `${label} (${currency})` : label,
  };
}
