import { setTimeout as delay } from 'node:timers/promises';
import { isDeepStrictEqual } from 'node:util';
import { parse } from 'csv-parse/sync';
import { familyOf } from '../../catalog/breakdowns.ts';
import { catalog } from '../../catalog/catalog.ts';
import type { LinkMaker, Links } from '../accounts/links.ts';
import { ConfigError } from '../config/config.ts';
import { parametersOf } from '../http/export/parameters.ts';
import { patientFetch } from '../http/request/patient-fetch.ts';
import type { DateRange } from '../report/days.ts';
import { maxRows } from '../report/sheet.ts';
import type { Schedule } from '../schedules/schedules.ts';

/** What a mail tells of a report. Figures are digits as the service writes them. */
export interface Summary {
  readonly columns: readonly string[];
  readonly rows: readonly (readonly string[])[];
  readonly rowCount: string;
  readonly totals: Readonly<Record<string, string>>;
  /** The code of its money, where it is known. */
  readonly currency?: string;
  readonly compared?: DateRange;
  /** The rows are those with most of it; absent: they are the first ones of the file. */
  readonly mostOf?: string;
  /** Days whose money may change. Runs of days have a slash in between. */
  readonly unconfirmed: readonly string[];
  /** The last day of the range that has figures; absent: no day has. */
  readonly lastDay?: string;
}

/** The rows of a report as a file. */
export interface ReportFile {
  readonly name: string;
  readonly type: string;
  readonly content: Buffer;
}

export interface Asked {
  readonly schedule: Schedule;
  readonly range: DateRange;
  /** The token of the schedule. */
  readonly maker: LinkMaker;
}

const rowsInMail = 10;
/** More make a mail that servers refuse: 100,000 rows are some 10 MB of CSV, 5 of a workbook. */
const mostRowsOfFile = 100_000;
/** Rows of long names and many figures have more. The whole file, and its mail, are in memory. */
const mostBytesOfFile = 20_000_000;
/**
 * For text and file of a mail in all, and as long again before, to find out whether its days are final: a service lets one report
 * take an hour at most. `sendingMs` of schedules/mails.ts is longer.
 */
const answerMs = 3_600_000;
const weekMs = 7 * 86_400_000;

/** Asks the service of reports over HTTP as anybody can who has a link, so that its limits and its gate apply. */
export class ReportService {
  readonly #url: string;
  readonly #links: Links;
  readonly #trustMs: number;

  /** @param trustMs how old what the service knows of the store may be */
  constructor(url: string, links: Links, trustMs: number) {
    this.#url = url;
    this.#links = links;
    this.#trustMs = trustMs;
  }

  /** The address of the whole file, behind that of the service, for a week; CSV where a sheet does not hold its rows. */
  link(asked: Asked, { rowCount }: Pick<Summary, 'rowCount'>): string {
    const attach = Number(rowCount) > maxRows ? 'csv' : asked.schedule.attach;
    return this.#fileLink({ ...asked, schedule: { ...asked.schedule, attach } }, weekMs);
  }

  async summary(asked: Asked, signal = AbortSignal.timeout(answerMs)): Promise<Summary> {
    const { report, body } = asked.schedule;
    const newest = { order_by: [{ field: 'start_time', direction: 'desc' }], limit: 1 };
    const [last, answer] = await Promise.all([
      this.#ask(this.#link(asked, `${report.split('/')[0]}/date.csv`, newest), signal),
      this.#ask(this.#topLink(asked), signal),
    ]);
    const [, lastRow] = cells(last.content);
    const [columns = [], ...rows] = cells(answer.content);
    const said = (name: string) => answer.headers.get(`adtally-${name}`) ?? '';
    const [start, end] = quoted(said('compare-to')).join().split('/');
    return {
      columns,
      rows,
      rowCount: limited(said('row-count'), body.limit),
      totals: Object.fromEntries(
        [...said('totals').matchAll(/(\w+)="([^"]*)"/g)].map(([, id = '', value = '']) => [id, value]),
      ),
      ...(said('currency') && { currency: said('currency') }),
      ...(start && end && { compared: { start, end } }),
      ...(isByMoney(body) && { mostOf: moneyOf(report) }),
      unconfirmed: quoted(said('unconfirmed-revenue-dates')),
      ...(lastRow?.[0] && { lastDay: lastRow[0] }),
    };
  }

  /**
   * A summary and the file it is of: the summary is the same before and after the file. Without a file where that is too large for
   * a mail. A tag of the file would not tell on replicas, nor while the store is too busy to tell its state.
   * @throws where the report changes each time
   */
  async report(asked: Asked): Promise<{ summary: Summary; file?: ReportFile }> {
    const signal = AbortSignal.timeout(answerMs);
    let summary = await this.summary(asked, signal);
    for (let attempt = 1; attempt <= 5; attempt++) {
      if (Number(summary.rowCount) > mostRowsOfFile) return { summary };
      const { headers, content } = await this.#ask(this.#fileLink(asked), signal);
      const [, name = `report.${asked.schedule.attach}`] =
        /filename="([^"]+)"/.exec(headers.get('content-disposition') ?? '') ?? [];
      if (content.length > mostBytesOfFile) return { summary };
      const type = headers.get('content-type') ?? 'application/octet-stream';
      await delay(this.#trustMs);
      const now = await this.summary(asked, signal);
      if (isDeepStrictEqual(now, summary)) return { summary, file: { name, type, content } };
      summary = now;
    }
    throw new Error('the report changed each time it was read');
  }

  #fileLink(asked: Asked, forMs?: number): string {
    const { report, attach, body } = asked.schedule;
    return this.#link(
      asked,
      `${report}.${attach}`,
      attach === 'xlsx' ? { totals: true, ...body } : body,
      forMs,
    );
  }

  #topLink(asked: Asked): string {
    const { report, body } = asked.schedule;
    const order = isByMoney(body) && { order_by: [{ field: moneyOf(report), direction: 'desc' }] };
    const limit = Math.min(Number(body.limit ?? rowsInMail), rowsInMail);
    const top = { ...body, ...order, totals: true, limit };
    return this.#link(asked, `${report}.csv`, top);
  }

  #link({ range, maker }: Asked, file: string, body: object, forMs = answerMs): string {
    const fields = { ...body, start_time: range.start, end_time: range.end };
    const address = `/v1/export/${file}?${parametersOf(fields)}`;
    const link = this.#links.make(maker, address, new Date(Date.now() + forMs));
    if (link === undefined) throw new ConfigError('LINK_SECRET: is needed to send reports');
    return link;
  }

  /**
   * An answer is read, up to the limit of a file, before a mail server is asked: a mail server may be slow, and the service breaks
   * off what is read slowly.
   */
  async #ask(link: string, signal: AbortSignal) {
    const read = async () => {
      const answer = await patientFetch(this.#url + link, { method: 'GET', signal });
      const pieces: Uint8Array[] = [];
      let bytes = 0;
      for await (const piece of answer.body ?? []) {
        pieces.push(piece);
        bytes += piece.length;
        if (bytes > mostBytesOfFile) break;
      }
      return { answer, content: Buffer.concat(pieces) };
    };
    const { answer, content } = await read().catch((cause: Error) => {
      throw new Error(`the service of reports does not answer, or broke off: ${cause.message}`, { cause });
    });
    if (answer.ok) return { headers: answer.headers, content };
    const { detail = '' } = await new Response(content).json().then(Object, () => ({}));
    // Not the whole address: it may open the report.
    const [leadsTo] = /^https?:\/\/[^/?#]+/.exec(answer.headers.get('location') ?? '') ?? [];
    const why = leadsTo === undefined ? detail : `SERVICE_URL leads to ${leadsTo}`;
    throw new Error(`the service of reports answered ${answer.status}${why && `: ${why}`}`);
  }
}

/** Whether rows with most money are shown first. With a limit the file has the first rows of an order, and the text the same. */
const isByMoney = ({ order_by, limit }: Schedule['body']): boolean =>
  order_by === undefined && limit === undefined;

/** The amount of the family of a report. */
function moneyOf(report: string): string {
  const { measures, money } = familyOf(catalog, report.split('/')[0] ?? '');
  return Object.entries(measures).find(([, { sumOf }]) => sumOf === money)?.[0] ?? '';
}

function cells(csv: Buffer): string[][] {
  return parse(csv);
}

/** The members of a header that lists strings. */
const quoted = (list: string): string[] => [...list.matchAll(/"([^"]*)"/g)].map(([, text = '']) => text);

const limited = (count: string, limit: unknown): string =>
  limit !== undefined && Number(limit) < Number(count) ? String(limit) : count;
