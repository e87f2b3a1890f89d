import { catalog } from '../../catalog/catalog.ts';
import type { DateRange } from '../report/days.ts';
import { localTime } from '../schedules/due.ts';
import type { Mail } from '../schedules/mails.ts';
import type { ReportFile, Summary } from './report-service.ts';
import { words } from './words.ts';

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
export function provisional({ unconfirmed, lastDay }: Summary, { end }: DateRange): string | undefined {
  if (unconfirmed.length > 0) {
    return words.unconfirmed(unconfirmed.map((days) => days.replace('/', ' to ')).join(', '));
  }
  if (lastDay === undefined) return words.noRowsYet;
  return lastDay < end ? words.noRowsSince(lastDay) : undefined;
}

/** The texts of a mail: what the report is, whether it is final, its totals and first rows, and the ways to the file and out. */
export function messageOf(told: Told): Message {
  const { mail, range, summary, file, fileLink, unsubscribeLink } = told;
  const { rows, rowCount, columns, compared, mostOf } = summary;
  const [family = '', breakdown = ''] = mail.schedule.report.split('/');
  const parts = breakdown.split('_').filter(Boolean).map(words.part);
  const report = words.report(words.family(family), parts);
  const days = words.days(range.start, range.end);
  const count = grouped(rowCount);
  const state = provisional(summary, range);
  const facts = [
    words.account(mail.schedule.account),
    state ?? words.final,
    ...lateness(told),
    ...(compared ? [words.compared(words.days(compared.start, compared.end))] : []),
  ];
  const totals = Object.entries(summary.totals).map(([id, value]) => [words.label(id), grouped(value)]);
  // Days that each row has are said once.
  const { time_grain: grain = 'day' } = mail.schedule.body;
  const said = !breakdown.endsWith('date') ? ['start_time', 'end_time'] : grain === 'day' ? ['end_time'] : [];
  const shown = columns.flatMap((column, n) => (said.includes(column) ? [] : [n]));
  const head = shown.map((n) => words.label(columns[n] ?? ''));
  const body = rows.map((row) =>
    shown.map((n) => (isText(columns[n]) ? row[n] : grouped(row[n] ?? '')) ?? ''),
  );
  const some = mostOf === undefined ? words.first : words.largest(words.label(mostOf));
  const rowsTitle =
    rows.length === 0 ? words.none : `${rows.length}` === rowCount ? words.rows : some(rows.length, count);
  const fileWords = file ? words.attached(file.name) : words.linked(count);
  const title = `${report}, ${days}`;
  return {
    subject: oneLine(words.subject(report, days, state === undefined)),
    text: [
      title,
      facts.join('\n'),
      `${words.totals}\n${totals.map((row) => row.join(': ')).join('\n')}`,
      `${rowsTitle}\n${[head, ...body].map((row) => row.map(oneLine).join(' | ')).join('\n')}`,
      `${fileWords}\n${words.download}: ${fileLink}`,
      `${words.unsubscribe}: ${unsubscribeLink}`,
    ].join('\n\n'),
    html: page(title, [
      `<h1 style="font-size:18px">${escaped(title)}</h1>`,
      ...facts.map((fact) => `<p>${escaped(fact)}</p>`),
      `<h2 style="font-size:15px">${words.totals}</h2>`,
      table(undefined, totals, (n) => n > 0),
      `<h2 style="font-size:15px">${escaped(rowsTitle)}</h2>`,
      rows.length > 0 ? table(head, body, (n) => !isText(columns[shown[n] ?? -1])) : '',
      `<p>${escaped(fileWords)} <a href="${escaped(fileLink)}">${words.download}</a></p>`,
      `<p style="font-size:12px"><a href="${escaped(unsubscribeLink)}">${words.unsubscribe}</a></p>`,
    ]),
  };
}

/** A document of these parts of HTML. */
export function page(title: string, parts: readonly string[]): string {
  return `<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>${escaped(title)}</title></head><body style="font:14px/1.5 sans-serif;color:#222;background:#fff;margin:16px">${parts.join('\n')}</body></html>`;
}

export function escaped(text: string): string {
  return text.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);
}

function lateness({ mail: { due }, now, timezone }: Told): string[] {
  if (now.getTime() - due.at.getTime() < lateMs) return [];
  return [words.late(localTime(due.at, timezone), localTime(now, timezone), timezone)];
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

const texts = new Set([
  'start_time',
  'end_time',
  ...Object.values(catalog.dimensions).flatMap(({ key, columns }) => [key, ...columns.map(({ id }) => id)]),
]);
const isText = (column = ''): boolean => texts.has(column);

/** Every digit, in groups of three before the point. */
function grouped(figure: string): string {
  const [whole = '', fraction] = figure.split('.');
  const digits = whole.replace(/\B(?=(\d{3})+$)/g, ',');
  return fraction === undefined ? digits : `${digits}.${fraction}`;
}

/** A name of a campaign may have any character. */
const oneLine = (text: string): string => text.replace(/[\p{Cc}\p{Zl}\p{Zp}]+/gu, ' ');
