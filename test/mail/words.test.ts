import { parse } from 'lossless-json';
import type { ParsedMail } from 'mailparser';
import { expect, test, vi } from 'vitest';
import { currencies } from '../../src/accounts/own-settings.ts';
import { page } from '../../src/mail/message.ts';
import { figuresOf, wordsOf } from '../../src/mail/words.ts';
import { event, load, loadRows } from '../support/events.ts';
import { useMailServer } from '../support/mail-server.ts';
import { digitsOf, linkSecret, tableOf, useMails } from '../support/mails.ts';
import { useService } from '../support/service.ts';
import { useStore } from '../support/store.ts';

const db = useStore();
const service = useService(db, { LINK_SECRET: linkSecret });
const mailServer = useMailServer();
const { look, scheduled } = useMails(db, service, mailServer);

const turned = 'Turned \u202e name';
const days = { start_time: '2026-03-01', end_time: '2026-03-01' };
const long = 'n'.repeat(1024);

/** Two days of a shop whose names and amounts are out of the common. */
async function oddDays(account: string): Promise<void> {
  const names = { turned, long, arabic: 'خصم 50%', returned: 'returned', free: 'free' };
  const spent = (campaign_id: keyof typeof names, spend: string, more = {}) =>
    event({ advertiser_id: account, campaign_id, event_type: 'referral', spend, confirmed: true, ...more });
  const large = Array.from({ length: 20 }, () => spent('turned', '500000000000.032716'));
  const lines = [
    ...large,
    spent('long', '1'),
    spent('arabic', '1234.5'),
    spent('returned', '-98765.4'),
    spent('free', '0'),
    spent('returned', '-7.25', { event_time: '2026-02-28T12:00:00.000Z' }),
    spent('free', '0', { event_type: 'impression', quantity: 1_234_567_890 }),
  ];
  expect((await load(db.store, lines)).rejectedRows).toBe(0);
  await loadRows(
    db.store,
    'campaigns',
    Object.entries(names).map(([id, name]) => [account, id, name]),
  );
  await currencies.set(db.store, account, 'EUR');
}

const locales = [
  {
    ...{ language: 'en-GB', subject: 'Campaigns, 1 Mar 2026', compared: 'Compared with 28 Feb 2026.' },
    ...{ final: 'All days are confirmed', spent: /^EUR\s9,999,999,902,470\.75432$/, head: 'Spent (EUR)' },
    ...{ done: 'gets no more of these mails' },
  },
  {
    ...{ language: 'de-DE', subject: 'Kampagnen, 01.03.2026', compared: 'Verglichen mit 28.02.2026.' },
    ...{ final: 'Alle Tage sind bestätigt', spent: /^9\.999\.999\.902\.470,75432\sEUR$/ },
    ...{ head: 'Ausgaben (EUR)', done: 'bekommt keine dieser E-Mails mehr' },
  },
  {
    ...{ language: 'ja', subject: 'キャンペーン 2026/03/01', compared: '2026/02/28 と比較しています。' },
    ...{ final: 'すべての日が確定済み', spent: /^EUR\s9,999,999,902,470\.75432$/, head: '費用 (EUR)' },
    ...{ done: 'への配信を停止しました' },
  },
];

test.each(locales)(
  'a mail in $language has the figures of the API, written as there',
  async ({ language, ...said }) => {
    const account = `shop-${language}`;
    await oddDays(account);
    await scheduled({ account, language, report: 'campaigns', body: { compare_to: 'previous_period' } });
    await expect
      .poll(() => service.post('/v1/campaigns', account, days).then(currencyOf), { timeout: 20_000 })
      .toBe('EUR');
    expect(await look('2026-03-02T06:00:00Z')).toBe(0);
    const [mail] = mailServer.mails;
    const answer = await service.post('/v1/campaigns', account, {
      ...{ ...days, compare_to: 'previous_period', totals: true },
      order_by: [{ field: 'spent', direction: 'desc' }],
    });
    const { rows, totals } = Object(parse(await answer.text())).result;
    const shownTotals = tableOf(mail as ParsedMail, 0);
    expect(shownTotals.map(([, value = '']) => digitsOf(value, language))).toEqual(
      Object.values(totals).map(String),
    );
    expect(shownTotals.some(([, value = '']) => said.spent.test(value))).toBe(true);
    const [head = [], ...cells] = tableOf(mail as ParsedMail, 1);
    expect(head).toContain(said.head);
    expect(
      cells.map(([name = '', ...figures]) => [name, ...figures.map((each) => digitsOf(each, language))]),
    ).toEqual(rows.map((row: object) => Object.values(row).slice(2).map(String)));
    expect(cells.map(([name]) => name)).toEqual(expect.arrayContaining([turned, long]));
    expect(mail?.subject).toBe(said.subject);
    expect(mail?.text).toContain(said.final);
    expect(mail?.text).toContain(said.compared);
    // What turns the direction of writing ends with its cell; a figure has nothing around it.
    expect(mail?.text).not.toMatch(/\u2068[\p{N}\p{P}\p{Sc}\s]*\u2069/u);
    expect(mail?.text).toContain(`\u2068${turned}\u2069 | `);
    expect(mail?.html).toContain(`<html lang="${language}">`);
    const { line = '' } = mail?.headerLines.find(({ key }) => key === 'list-unsubscribe') ?? {};
    const ended = await fetch(line.replace(/^[^<]*<|>$/g, ''), { method: 'POST' });
    expect(await ended.text()).toContain(said.done);
  },
);

const currencyOf = (answer: Response) => answer.headers.get('adtally-currency');

test('a mail is English throughout where Node.js knows no other language', () => {
  const known = vi.spyOn(Intl.NumberFormat, 'supportedLocalesOf').mockReturnValue([]);
  try {
    const { count, family } = wordsOf('de-AT');
    expect([count('12345'), family('campaigns')]).toEqual(['12,345', wordsOf('en').family('campaigns')]);
    expect(figuresOf('campaigns', 'de-AT').cell('impressions', '12345')).toBe('12,345');
    expect(page('de-AT', '', [])).toContain('<html lang="en">');
  } finally {
    known.mockRestore();
  }
});
