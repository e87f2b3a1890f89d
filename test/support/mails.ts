import { randomUUID } from 'node:crypto';
import type { ParsedMail } from 'mailparser';
import { afterEach } from 'vitest';
import { Links } from '../../src/accounts/links.ts';
import { issueToken } from '../../src/accounts/tokens.ts';
import { ReportService } from '../../src/mail/report-service.ts';
import { Sender } from '../../src/mail/sender.ts';
import { type Schedule, storeSchedule } from '../../src/schedules/schedules.ts';
import type { TestMailServer } from './mail-server.ts';
import type { TestService } from './service.ts';
import { onEveryShard, type TestStore } from './store.ts';

export const linkSecret = 'a secret of more than 32 characters';

interface Looking {
  readonly again?: string;
  readonly smtpUrl?: string;
  readonly serviceUrl?: string;
}

/** From 2026-03-02 on each day at 6 the figures of the day before, with a token that opens nothing. */
export const dailySchedule = (account: string): Schedule => ({
  id: 'daily',
  account,
  report: 'campaigns/device',
  body: {},
  period: 'yesterday',
  every: 'day',
  at: '06:00',
  to: ['anna@example.com'],
  attach: 'xlsx',
  waitHours: 0,
  token: 'none',
  language: 'en-GB',
  madeBy: '',
  state: 'active',
  since: new Date('2026-03-02T00:00:00Z'),
});

/** Schedules of one test file, and senders of their mails. */
export function useMails(db: TestStore, service: TestService, mailServer: TestMailServer) {
  const said: string[] = [];
  let accounts = 0;
  afterEach(async () => {
    mailServer.mails.length = 0;
    said.length = 0;
    await onEveryShard(db, 'TRUNCATE TABLE schedules');
  });
  return {
    said,
    /** Of the mails that came. */
    recipients: () => mailServer.mails.map(({ to }) => (Array.isArray(to) ? '' : to?.text)),
    /** Looks once. Each sender is another process, as far as the ledger can tell. */
    look(
      at: string,
      { smtpUrl = mailServer.url, serviceUrl = service.url, ...again }: Looking = {},
    ): Promise<number> {
      const links = new Links(() => linkSecret);
      const sender = new Sender({
        store: db.store,
        service: new ReportService(serviceUrl, links, 0),
        links,
        timezone: 'UTC',
        smtpUrl,
        from: { name: 'Reports: Acme (EU)', address: 'reports@example.com' },
        publicUrl: service.url,
        now: () => new Date(at),
        say: (text) => said.push(text),
      });
      return sender.sendDue(again);
    },
    /** A daily schedule of an account of its own. */
    async scheduled(given: Partial<Schedule> = {}): Promise<Schedule> {
      const account = given.account ?? `account-${++accounts}`;
      const { id: token } = await issueToken(db.store, { account, label: '' });
      const id = `${++accounts}${randomUUID().slice(0, 8)}`;
      const schedule = { ...dailySchedule(account), id, token, ...given };
      await storeSchedule(db.store, schedule);
      return schedule;
    },
  };
}

/** Cells of the n-th table of a mail. */
export function tableOf(mail: ParsedMail, n: number): string[][] {
  const [, html = ''] = (mail.html || '').split('<table').slice(n);
  const [body = ''] = html.split('</table>');
  return body
    .split('<tr>')
    .slice(1)
    .map((row) =>
      [...row.matchAll(/<t[dh][^>]*>(.*?)<\/t[dh]>/gs)].map(([, cell = '']) =>
        cell.replace(/&#(\d+);/g, (_, code) => String.fromCharCode(code)),
      ),
    );
}

/** The digits of a figure, as the API has them, that a locale wrote; a share in percent, too. */
export function digitsOf(text: string, locale: string): string {
  const parts = new Intl.NumberFormat(locale).formatToParts(1.5);
  const point = parts.find(({ type }) => type === 'decimal')?.value ?? '.';
  const [whole = '', fraction = ''] = text.split(point).map((part) => part.replace(/\D/g, ''));
  if (!/\d/.test(whole)) throw new Error(`no figure: ${text}`);
  const places = fraction.length + (text.includes('%') ? 2 : 0);
  const digits = (whole + fraction).padStart(places + 1, '0');
  const rest = digits.slice(digits.length - places).replace(/0+$/, '');
  return `${/[-\u2212]/.test(text) ? '-' : ''}${BigInt(digits.slice(0, digits.length - places))}${rest && `.${rest}`}`;
}
