import { en } from '../app/words/en.ts';

/** Words of the page, which knows all that the catalog has. */
const wordOf = (words: Readonly<Record<string, string>>, id: string): string => words[id] ?? id;

const label = (column: string): string => {
  const [, metric = column, part] = /^(.*)_(compared|change)$/.exec(column) ?? [];
  const name = wordOf(en.columns, metric);
  return part === 'compared' ? en.compared(name) : part === 'change' ? en.change(name) : name;
};

const list = new Intl.ListFormat('en-GB');

/** Every text of a mail, and of the page where one ends them. */
export const words = {
  label,
  subject: (report: string, days: string, isFinal: boolean) =>
    `${report}, ${days}${isFinal ? '' : ' (provisional)'}`,
  report: (family: string, parts: readonly string[]) =>
    parts.length === 0 ? family : `${family} by ${list.format(parts)}`,
  family: (name: string): string => wordOf(en.families, name),
  part: (name: string): string => (name === 'date' ? 'day' : wordOf(en.dimensions, name).toLowerCase()),
  days: (start: string, end: string) => (start === end ? start : `${start} to ${end}`),
  account: (name: string) => `Account: ${name}`,
  compared: (days: string) => `Compared with ${days}.`,
  final: 'All days are confirmed: these figures are final.',
  unconfirmed: (days: string) => `Provisional: money may still change on ${days}.`,
  noRowsSince: (day: string) => `Provisional: there are no figures after ${day} yet.`,
  noRowsYet: 'Provisional: there are no figures of these days yet.',
  late: (due: string, sent: string, timezone: string) =>
    `This mail comes late: it was due on ${due} and was sent on ${sent} (${timezone}).`,
  totals: 'Totals',
  largest: (by: string) => (rows: number, count: string) => `The ${rows} largest of ${count} rows, by ${by}`,
  first: (rows: number, count: string) => `The first ${rows} of ${count} rows`,
  rows: 'Rows',
  none: 'There are no rows.',
  attached: (file: string) => `All rows are in the file ${file}.`,
  linked: (count: string) => `The file has ${count} rows, too many for a mail. Download it here, for a week:`,
  download: 'Download all rows',
  unsubscribe: 'No more of these mails',
  page: {
    title: 'Reports by mail',
    ask: (recipient: string) => `Do you want no more of these mails to ${recipient}?`,
    confirm: 'Send no more',
    done: (recipient: string) => `${recipient} gets no more of these mails.`,
    unknown: 'This link is not whole. Copy all of it from the mail.',
  },
};
