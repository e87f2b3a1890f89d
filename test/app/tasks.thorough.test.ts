import { readFile } from 'node:fs/promises';
import type { Page } from 'playwright-core';
import { beforeAll, describe, expect, test } from 'vitest';
import { currencies } from '../../src/accounts/own-settings.ts';
import { event, load, loadRows } from '../support/events.ts';
import { useOpenIdProvider } from '../support/openid-provider.ts';
import { readers } from '../support/readers.ts';
import { useService } from '../support/service.ts';
import { useStore } from '../support/store.ts';
import { useBrowser } from './browser.ts';
import { daysAgo, settled, whole } from './pages.ts';
import { type Person, ways } from './person.ts';

const account = 'acme';
const mostClicks = 5;
const db = useStore();
const provider = useOpenIdProvider({ anna: { accounts: account } });
const service = useService(db, provider.env());
const browser = useBrowser();
const campaigns = ['Tents', 'Boots', 'Socks'];

beforeAll(async () => {
  await currencies.set(db.store, account, 'EUR');
  const days = Array.from({ length: 100 }, (_, day) => day);
  const events = campaigns.flatMap((campaign_id, c) =>
    days.flatMap((day) =>
      ['grown', 'fallen'].flatMap((creative_id, n) => {
        const said = { event_time: `${daysAgo(day)}T00:00:00Z`, advertiser_id: account, campaign_id };
        const device = n === day % 2 ? 'mobile' : 'tv';
        const spend = `${creative_id === 'grown' ? 300 - 2 * day : (c + 2) * day}.${c + 1}5`;
        const of = { ...said, creative_id, device };
        return [
          event({ ...of, spend, quantity: 1000 }),
          event({ ...of, event_type: 'conversion', quantity: 2 + c }),
        ];
      }),
    ),
  );
  await load(db.store, events);
  await loadRows(db.store, 'creatives', [
    [account, 'grown', 'Spring'],
    [account, 'fallen', 'Autumn'],
  ]);
});

type Figures = Record<string, string | number>;

async function answer(path: string, page: Page, body: object = {}) {
  const [start_time, end_time] =
    (await page.locator('.controls').getAttribute('data-days'))?.split('/') ?? [];
  const response = await service.post(path, account, { start_time, end_time, totals: true, ...body });
  if (!response.ok) throw new Error(await response.text());
  return (await response.json()).result as { rows: Figures[]; totals: Figures };
}

const euros = (amount: unknown, sign = '') =>
  `${sign}EUR\u00a0${Number(amount).toLocaleString('en-GB', { minimumFractionDigits: 2, maximumFractionDigits: 2 })}`;
const percent = (now: Figures) =>
  (Number(now.spent_change) / Number(now.spent_compared)).toLocaleString('en-GB', {
    style: 'percent',
    signDisplay: 'exceptZero',
    maximumFractionDigits: 1,
  });
const compared = (now: Figures) => `${Number(now.spent_change) < 0 ? '▼' : '▲'} ${percent(now)}`;

const card = (page: Page) => page.locator('.card', { hasText: 'Spent' });
/** What is said with every digit where there is no room for it. */
const spent = async (page: Page) => await card(page).locator('.value').getAttribute('title');
const change = (page: Page) => card(page).locator('.change').textContent();
const button = (page: Page, name: string) => page.getByRole('button', { name, exact: true });
const choice = (page: Page, name: string) =>
  page.locator('label', { hasText: new RegExp(`^${name}$`) }).filter({ has: page.locator('input') });
const head = (page: Page, column: string) => page.locator(`button.head[data-column=${column}]`);
const firstRow = (page: Page) => page.locator('regular-table tbody tr').first();

/** A column that is out of sight is scrolled to, which is no click. */
async function scrollTo(page: Page, column: string): Promise<void> {
  const isInSight = () =>
    head(page, column).evaluateAll((heads) =>
      heads.some((each) => each.getBoundingClientRect().right <= document.documentElement.clientWidth),
    );
  for (let n = 0; n < 30 && !(await isInSight()); n++) {
    await page.locator('regular-table').evaluate((table) => table.scrollBy(100, 0));
    await settled(page);
  }
}

async function days(page: Page, person: Person, range: string): Promise<void> {
  await person.press(page.locator('.range summary'));
  await person.press(button(page, range));
}

interface Task {
  readonly asked: string;
  readonly done: (page: Page, person: Person) => Promise<unknown>;
  /** What the page then says, and what it should. */
  readonly read: (page: Page) => Promise<unknown>;
  readonly expected: (page: Page) => Promise<unknown>;
}

const exported = new WeakMap<Page, Promise<string>>();
const tasks: readonly Task[] = [
  {
    asked: 'what did we spend last month',
    done: (page, person) => days(page, person, 'Last month'),
    read: spent,
    expected: async (page) => euros((await answer('/v1/campaigns', page)).totals.spent),
  },
  {
    asked: 'how did last month compare with the month before',
    done: async (page, person) => {
      await days(page, person, 'Last month');
      await person.pick(page.locator('#compare'), 'Month before');
    },
    read: change,
    expected: async (page) =>
      compared((await answer('/v1/campaigns', page, { compare_to: 'previous_month' })).totals),
  },
  {
    asked: 'are we ahead of the same days of last month',
    done: async (page, person) => {
      await days(page, person, 'This month');
      await person.pick(page.locator('#compare'), 'Month before');
    },
    read: change,
    expected: async (page) =>
      compared((await answer('/v1/campaigns', page, { compare_to: 'previous_month' })).totals),
  },
  {
    asked: 'which creative got worse',
    done: async (page, person) => {
      await person.press(choice(page, 'Creative'));
      await person.pick(page.locator('#compare'), 'Previous period');
      await person.press(button(page, 'What changed most'));
    },
    read: async (page) => {
      const last = page.locator('.bars.changes li').last();
      return [await last.locator('.label').textContent(), await last.locator('.amount').textContent()];
    },
    expected: async (page) => {
      const order_by = [{ field: 'spent_change', direction: 'asc' }];
      const body = { compare_to: 'previous_period', order_by };
      const [worst = {}] = (await answer('/v1/campaigns/breakdowns/creative', page, body)).rows;
      return [
        `${worst.campaign} · ${worst.creative_headline}`,
        `▼ ${euros(-Number(worst.spent_change), '-')} (${percent(worst)})`,
      ];
    },
  },
  {
    asked: 'where do we pay most for a conversion',
    done: async (page, person) => {
      await person.press(choice(page, 'Total'));
      await whole(page);
      await scrollTo(page, 'cpa');
      await person.press(head(page, 'cpa'));
    },
    read: (page) =>
      firstRow(page).locator('th').last().locator('xpath=descendant-or-self::*[not(*)]').last().textContent(),
    expected: async (page) => {
      const order_by = [{ field: 'cpa', direction: 'desc' }];
      return (await answer('/v1/campaigns', page, { order_by })).rows[0]?.campaign;
    },
  },
  {
    asked: 'how did the tents do on each device',
    done: async (page, person) => {
      await person.press(page.locator('regular-table tbody').getByText('Tents').first());
      await whole(page);
      await person.press(button(page, 'Devices'));
    },
    read: async (page) => (await page.locator('.bars .amount').allTextContents()).sort(),
    expected: async (page) => {
      const filters = { campaign: ['Tents'] };
      const { rows } = await answer('/v1/campaigns/breakdowns/device', page, { filters });
      return rows.map((row) => euros(row.spent)).sort();
    },
  },
  {
    asked: 'only what was seen on mobiles',
    done: async (page, person) => {
      await person.press(page.locator('.filter summary'));
      await person.pick(page.locator('#filter-field'), 'Device');
      await person.press(choice(page, 'mobile'));
    },
    read: spent,
    expected: async (page) =>
      euros((await answer('/v1/campaigns', page, { filters: { device: ['mobile'] } })).totals.spent),
  },
  {
    asked: 'week by week, please',
    done: (page, person) => person.press(choice(page, 'Week')),
    read: (page) => page.locator('.as-table tbody td').allTextContents(),
    expected: async (page) => {
      const { rows } = await answer('/v1/campaigns/breakdowns/date', page, { time_grain: 'week' });
      const weeks = new Map<unknown, number>();
      for (const { start_time, spent } of rows)
        weeks.set(start_time, (weeks.get(start_time) ?? 0) + Number(spent));
      return [...weeks.values()].map((sum) => euros(sum));
    },
  },
  {
    asked: 'give this to my boss as an Excel file',
    done: async (page, person) => {
      await person.press(page.locator('.take summary'));
      const file = page.waitForEvent('download').then((download) => download.path());
      exported.set(page, file);
      await person.press(button(page, 'Excel'));
    },
    read: async (page) => {
      const { columns, rows } = await readers.xlsx(await readFile((await exported.get(page)) ?? ''));
      return rows.at(-1)?.[columns.indexOf('spent (EUR)')];
    },
    expected: async (page) => String((await answer('/v1/campaigns', page)).totals.spent),
  },
  {
    asked: 'where does this number come from',
    done: (page, person) => person.press(firstRow(page).locator('td').first()),
    read: async (page) => {
      const panel = page.getByRole('dialog');
      const columns = await panel.locator('thead th').allTextContents();
      const sums = await panel.locator('tfoot :is(th, td)').allTextContents();
      return sums.at(columns.indexOf('Spent (EUR)') - columns.length)?.replaceAll(',', '');
    },
    expected: async (page) => String((await answer('/v1/campaigns/breakdowns/date', page)).rows[0]?.spent),
  },
  {
    asked: 'send my colleague what I see',
    done: async (page, person) => {
      await person.press(choice(page, 'Total'));
      await whole(page);
      await person.press(page.locator('.take summary'));
      await person.press(button(page, 'Link to this page'));
    },
    read: (page) => page.evaluate(() => navigator.clipboard.readText()),
    expected: async () => `${service.url}/app#report=campaigns&each=total`,
  },
];

describe.each(ways)('with %s', (_, options, way) => {
  test(`${tasks.length + 1} questions have their answer after at most ${mostClicks} clicks`, async () => {
    const permissions = ['clipboard-read', 'clipboard-write'];
    const page = await browser.open(`${service.url}/app`, { ...options, permissions });
    const person = way(page);
    await person.press(page.getByRole('link', { name: `Sign in with ${provider.host}` }));
    await person.type(page.getByLabel('Name'), 'anna');
    await page.keyboard.press('Enter');
    await whole(page);
    expect(await page.locator('.masthead .account').textContent()).toBe(`Account ${account}`);
    for (const { asked, done, read, expected } of tasks) {
      await page.goto(`${service.url}/app#report=campaigns&step=${asked}`);
      await page.reload();
      await whole(page);
      person.clicks = 0;
      await done(page, person);
      await expect.poll(() => read(page), { message: asked, timeout: 20_000 }).toEqual(await expected(page));
      expect(person.clicks, asked).toBeLessThanOrEqual(mostClicks);
    }
    expect(browser.complaints).toEqual([]);
  });
});
