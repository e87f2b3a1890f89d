import { beforeAll, describe, expect, it } from 'vitest';
import { createToken } from '../../../src/accounts/tokens.ts';
import { AccountCache } from '../../../src/http/access/account-cache.ts';
import type { ChangesAnswer } from '../../../src/report/changes/changes.ts';
import { type EventLine, event, load, loadRows } from '../../support/events.ts';
import { thorough } from '../../support/mode.ts';
import { answer, lines, Oracle, paths, type Range } from '../../support/oracle.ts';
import { useService } from '../../support/service.ts';
import { useStore } from '../../support/store.ts';

const range: Range = { start: '2026-01-01', end: '2026-12-31' };

/** Ids that a careless query, pattern, template or encoding would take for one another or for code. */
const accounts = [
  'acct',
  'acct-1',
  'acct-10',
  'ACCT',
  ' acct',
  'acct ',
  'acct%',
  'acct_',
  'acct_1',
  '%',
  '_',
  "'",
  "''",
  "acct' OR '1'='1",
  "acct\\' OR 1=1 --",
  'a"b',
  '`acct`',
  '\\',
  '\\\\',
  '\\n',
  '\n',
  'acct\n',
  'acct\t',
  'acct\r\n',
  '\\N',
  'null',
  '{account:String}',
  '{first:Date}',
  // biome-ignore lint/suspicious/noTemplateCurlyInString: a placeholder of FORMAT Template
  '${data}',
  // biome-ignore lint/suspicious/noTemplateCurlyInString: a placeholder of FORMAT Template
  '${campaign:JSON}',
  '$$',
  '</script><script>',
  '\u2028\u2029',
  'acct\0',
  '\0',
  '\u0001\b\f\u001b\u007f\u0085',
  'é',
  'e\u0301',
  'ß',
  'ss',
  '\u05d0\u05d1\u202e\u05d2',
  'שלום acct',
  '👩‍👩‍👧‍👦',
  '👩',
  '\u{10ffff}',
  '\ufeffacct',
  'a+b&c=d#e?f%20',
  '😀'.repeat(128),
  '😀'.repeat(127),
  'x'.repeat(128),
  'x'.repeat(127),
];
const printable = (text: string) => JSON.stringify(text).slice(0, 40);

/** Every account on every path, or every account and every path. @param account by its place in the list */
const pathsOf = (account: number) => paths.filter((_, n) => thorough || (n + account) % 8 === 0);

describe('an account', () => {
  const test = useStore();
  const service = useService(test);
  const oracle = new Oracle();

  beforeAll(async () => {
    const events = accounts.flatMap(eventsOf);
    await load(test.store, events);
    oracle.load(events);
    const sides = { campaigns: 'campaign', creatives: 'creative', ad_units: 'ad unit', sites: 'site' };
    for (const [list, side] of Object.entries(sides) as [keyof typeof sides, string][]) {
      const rows = accounts.map(
        (account, n) => [account, account, `${side} ${secret(n)} ${account}`] as const,
      );
      await loadRows(test.store, list, rows);
      oracle.name(list, rows);
    }
    // Every other account confirms the day on which only it and nobody else has money.
    const confirmations = accounts.map((account, n) => [account, dayOf(n)] as const).filter((_, n) => n % 2);
    await loadRows(test.store, 'confirmations', confirmations);
    for (const [account, day] of confirmations) oracle.confirm(account, [day]);
  });

  it.each(accounts.map((account, n) => [printable(account), account, n] as const))(
    '%s sees its own rows, names and unconfirmed dates, and nobody else’s',
    async (_, account, n) => {
      const asked = pathsOf(n);
      const answers = await Promise.all(asked.map((path) => answer(service, path, account, range)));
      for (const [index, path] of asked.entries()) {
        const found = answers[index];
        const expected = oracle.report(path, account, range);
        expect(lines(found?.rows ?? []), path).toEqual(lines(expected.rows));
        expect(new Set(JSON.stringify(found).match(/secret-\d+;/g)), path).toEqual(new Set([secret(n)]));
        expect(found?.unconfirmed_revenue_dates, path).toEqual(n % 2 ? [] : [dayOf(n)]);
      }
    },
  );

  it('sees its own changed days, and nobody else’s', async () => {
    for (const [n, account] of accounts.entries()) {
      if (n % 7) continue;
      const result = await changed(n % 2 ? 'campaigns' : 'ad_units', account);
      expect(result.days.map(({ day }) => day)).toEqual([dayOf(n), '2026-06-30']);
      expect(result.days.map(({ unconfirmed }) => unconfirmed)).toEqual([n % 2 === 0, false]);
      expect(result.names_changed_at).toMatch(/^20/);
    }
  });

  const changed = async (family: string, account: string): Promise<ChangesAnswer> => {
    const body = { changed_since: '1970-01-01T00:00:00Z' };
    const response = await service.post(`/v1/${family}/changes`, account, body);
    return JSON.parse(await response.text()).result;
  };

  it.runIf(!thorough)('has a login from the moment its token exists', async () => {
    const cache = new AccountCache({ store: test.store, refreshMs: 1, onError: () => {} });
    await cache.start();
    try {
      for (const n of Array.from({ length: 30 }).keys()) {
        const token = await createToken(test.store, { account: `account ${n}`, label: '' });
        expect(await cache.login(token)).toMatchObject({ account: `account ${n}` });
      }
    } finally {
      cache.stop();
    }
  });

  it('without anything of its own sees nothing, whatever its id looks like', async () => {
    const strangers = ['acc', 'acct-', 'acct-100', 'ac%', '%%', "' OR ''='", 'x'.repeat(126), 'Ss', '1'];
    for (const [n, stranger] of strangers.entries()) {
      for (const path of pathsOf(n)) {
        const { rows, unconfirmed_revenue_dates } = await answer(service, path, stranger, range);
        expect([rows, unconfirmed_revenue_dates], `${path} of ${stranger}`).toEqual([[], []]);
      }
      expect(await changed('campaigns', stranger)).toMatchObject({ days: [], names_changed_at: null });
    }
  });
});

/** Marks everything that belongs to account n. */
const secret = (n: number) => `secret-${n};`;

/** A day of money of its own for each account. */
const dayOf = (n: number) => new Date(Date.UTC(2026, 0, 1 + n)).toISOString().slice(0, 10);

/** On both sides: rows under the account's own id as every kind of id, and rows of the ids that all share. */
function eventsOf(account: string, n: number): EventLine[] {
  const time = { event_time: `${dayOf(n)}T12:00:00Z` };
  const money = { spend: `${n}.5`, revenue: `${n}.25` };
  const sides = (id: string, detail: string) => ({
    advertiser_id: account,
    campaign_id: id,
    creative_id: detail,
    publisher_id: account,
    ad_unit_id: id,
    site_id: detail,
  });
  return [
    event({ ...time, ...money, ...sides(account, account), device: [...account].slice(0, 32).join('') }),
    event({ ...time, ...sides('acct', secret(n)), event_type: 'referral', quantity: n + 1 }),
    event({
      ...time,
      ...sides(`${secret(n)}${[...account].slice(0, 99).join('')}`, ''),
      event_type: 'ad_request',
    }),
    event({ ...sides('acct', 'acct'), event_time: '2026-06-30T00:00:00Z', quantity: n + 1 }),
  ];
}
