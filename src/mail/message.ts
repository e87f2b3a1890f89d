import { catalog } from '../../catalog/catalog.ts';
import { name } from '../app/words/en.ts';
import type { DateRange } from '../report/days.ts';
import type { Mail } from '../schedules/mails.ts';
import type { ReportFile, Summary } from './report-service.ts';
import { figuresOf, knownOf, type WordsOfLocale, wordsOf } from './words.ts';

export interface Told {
  readonly mail: Mail;
  readonly range: DateRange;
  readonly summary: Summary;
  /** Absent: it has too many rows for a mail. */
  readonly file: ReportFile | undefined;
  /** Whole addresses. */
  readonly fileLink: string;
  readonly unsubscribeLink: string;
  readonly now: Date;
  readonly timezone: string;
}

export interface Message {
  readonly subject: string;
  readonly text: string;
  readonly html: string;
}

/** A mail that is sent so long after it was due says so. */
const lateMs = 3_600_000;

/** Why a report is provisional; undefined: it is final. */
export function provisional(
  { unconfirmed, lastDay }: Summary,
  { end }: DateRange,
  words: WordsOfLocale,
): string | undefined {
  if (unconfirmed.length > 0) {
    const runs = unconfirmed.map((run) => run.split('/'));
    return words.unconfirmed(words.list(runs.map(([first = '', last]) => words.days(first, last))));
  }
  if (lastDay === undefined) return words.noRowsYet;
  return lastDay < end ? words.noRowsSince(words.days(lastDay)) : undefined;
}

/** The texts of a mail: what the report is, whether it is final, its totals and first rows, and the ways to the file and out. */
export function messageOf(told: Told): Message {
  const { mail, range, summary, file, fileLink, unsubscribeLink } = told;
  const { account, language, madeBy, report: path, body: fields } = mail.schedule;
  const { rows, rowCount, columns, compared, mostOf, currency } = summary;
  const words = wordsOf(language);
  const [family = '', breakdown = ''] = path.split('/');
  const figures = figuresOf(family, language, currency);
  const { time_grain: grain = 'day' } = fields;
  const parts = breakdown.split('_').filter(Boolean);
  const report = words.report(
    words.family(family),
    parts.map((part) => words.part(part, String(grain))),
  );
  const days = words.days(range.start, range.end);
  const count = words.count(rowCount);
  const state = provisional(summary, range, words);
  const facts = [
    words.account(account),
    state ?? words.final,
    ...lateness(told, words),
    ...(compared ? [words.compared(words.days(compared.start, compared.end))] : []),
  ];
  const totals = Object.entries(summary.totals).map(([id, value]) => [
    words.column(id),
    figures.total(id, value),
  ]);
  // Days that each row has are said once.
  const said = !breakdown.endsWith('date') ? ['start_time', 'end_time'] : grain === 'day' ? ['end_time'] : [];
  const shown = columns.flatMap((column, n) => (said.includes(column) ? [] : [n]));
  const label = (id: string) =>
    figures.head(id, words.column(id === 'start_time' && grain !== 'day' ? 'first_day' : id));
  const cell = (id: string, text: string) =>
    isDay(id) ? words.days(text) : isText(id) ? text : figures.cell(id, text);
  const head = shown.map((n) => label(columns[n] ?? ''));
  const body = rows.map((row) => shown.map((n) => cell(columns[n] ?? '', row[n] ?? '')));
  const some = (shown: string) =>
    mostOf === undefined ? words.first(shown, count) : words.largest(words.column(mostOf), shown, count);
  // A name may turn the direction of writing, but not beyond its cell.
  const named = (row: readonly string[]) =>
    row.map((text, n) => (isName(columns[shown[n] ?? -1]) ? name(oneLine(text)) : text));
  const rowsTitle =
    rows.length === 0
      ? words.none
      : `${rows.length}` === rowCount
        ? words.rows
        : some(words.count(`${rows.length}`));
  const fileWords = file ? words.attached(file.name) : words.linked(count);
  const unsubscribe = madeBy ? words.ofAccount.unsubscribe : words.unsubscribe;
  const title = words.subject(report, days, true);
  return {
    subject: oneLine(words.subject(report, days, state === undefined)),
    text: [
      title,
      facts.join('\n'),
      `${words.totals}\n${totals.map((row) => row.join(': ')).join('\n')}`,
      `${rowsTitle}\n${[head, ...body.map(named)].map((row) => row.join(' | ')).join('\n')}`,
      `${fileWords}\n${words.download}: ${fileLink}`,
      `${unsubscribe}: ${unsubscribeLink}`,
    ].join('\n\n'),
    html: page(language, title, [
      `<h1 style="font-size:18px">${escaped(title)}</h1>`,
      ...facts.map((fact) => `<p>${escaped(fact)}</p>`),
      `<h2 style="font-size:15px">${words.totals}</h2>`,
      table(undefined, totals, (n) => n > 0),
      `<h2 style="font-size:15px">${escaped(rowsTitle)}</h2>`,
      rows.length > 0 ? table(head, body, (n) => !isText(columns[shown[n] ?? -1])) : '',
      `<p>${escaped(fileWords)} <a href="${escaped(fileLink)}">${words.download}</a></p>`,
      `<p style="font-size:12px"><a href="${escaped(unsubscribeLink)}">${unsubscribe}</a></p>`,
    ]),
  };
}

/** The mail that asks a recipient whether the reports of an account may come; the links are whole addresses. */
export function questionOf(mail: Mail, agreeLink: string, unsubscribeLink: string): Message {
  const { schedule, recipient } = mail;
  const { question } = wordsOf(schedule.language);
  const { subject, button, refuse } = question;
  const text = oneLine(question.text(schedule.account, recipient));
  const link = (address: string, label: string) => `<p><a href="${escaped(address)}">${label}</a></p>`;
  return {
    subject,
    text: [text, `${button}: ${agreeLink}`, `${refuse}: ${unsubscribeLink}`].join('\n\n'),
    html: page(schedule.language, subject, [
      `<p>${escaped(text)}</p>`,
      link(agreeLink, button),
      link(unsubscribeLink, refuse),
    ]),
  };
}

/** A document of these parts of HTML. */
export function page(language: string, title: string, parts: readonly string[]): string {
  return `<!doctype html><html lang="${escaped(knownOf(language))}"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>${escaped(title)}</title></head><body style="font:14px/1.5 sans-serif;color:#222;background:#fff;margin:16px">${parts.join('\n')}</body></html>`;
}

export function escaped(text: string): string {
  return text.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);
}

function lateness({ mail: { due }, now, timezone }: Told, words: WordsOfLocale): string[] {
  if (now.getTime() - due.at.getTime() < lateMs) return [];
  return [words.late(words.moment(due.at, timezone), words.moment(now, timezone), timezone)];
}

const cellStyle = 'padding:3px 10px;border-bottom:1px solid #ddd';

function table(
  head: readonly string[] | undefined,
  rows: readonly (readonly string[])[],
  isFigure: (n: number) => boolean,
): string {
  const line = (cells: readonly string[], tag: string) =>
    `<tr>${cells
      .map((cell, n) => {
        const align = isFigure(n) ? 'right;white-space:nowrap' : 'left';
        return `<${tag} style="${cellStyle};text-align:${align}">${escaped(cell)}</${tag}>`;
      })
      .join('')}</tr>`;
  const lines = [...(head ? [line(head, 'th')] : []), ...rows.map((row) => line(row, 'td'))];
  return `<table style="border-collapse:collapse">${lines.join('\n')}</table>`;
}

const isDay = (column: string): boolean => column === 'start_time' || column === 'end_time';
const texts = new Set(
  Object.values(catalog.dimensions).flatMap(({ key, columns }) => [key, ...columns.map(({ id }) => id)]),
);
const isName = (column = ''): boolean => texts.has(column);
const isText = (column = ''): boolean => isDay(column) || isName(column);

/** A name of a campaign may have any character. */
const oneLine = (text: string): string => text.replace(/[\p{Cc}\p{Zl}\p{Zp}]+/gu, ' ');
