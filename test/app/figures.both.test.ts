import type { BrowserContextOptions, Page } from 'playwright-core';
import { beforeAll, expect, test } from 'vitest';
import { de } from '../../src/app/words/de.ts';
import { en } from '../../src/app/words/en.ts';
import { ja } from '../../src/app/words/ja.ts';
import { type EventLine, event, load } from '../support/events.ts';
import { thorough } from '../support/mode.ts';
import { seededRandom, testSeed } from '../support/random.ts';
import { type TestService, useService } from '../support/service.ts';
import { useStore } from '../support/store.ts';
import { type TestBrowser, useBrowser } from './browser.ts';
import { daysAgo, plain, settled, shownDay, whole } from './pages.ts';

/** Reads the figures off the page and compares each with the API's answer to the same question. */

const sizes = {
  desktop: { viewport: { width: 1440, height: 900 } },
  laptop: { viewport: { width: 1280, height: 720 } },
  tablet: { viewport: { width: 820, height: 1180 } },
  phone: { viewport: { width: 390, height: 844 }, hasTouch: true },
  /** A laptop at a zoom of 200 %: half the room, and two dots for each pixel. */
  zoomed: { viewport: { width: 720, height: 450 }, deviceScaleFactor: 2 },
} as const satisfies Record<string, BrowserContextOptions>;
type Size = keyof typeof sizes;

/** What the page says, and the powers of ten that its shortened numbers name. */
const languages = {
  'en-GB': { words: en, tens: { K: 3n, M: 6n, bn: 9n, tn: 12n } },
  'de-DE': { words: de, tens: { 'Mio.': 6n, 'Mrd.': 9n, 'Bio.': 12n } },
  'ja-JP': { words: ja, tens: { 万: 4n, 億: 8n, 兆: 12n } },
};
type Locale = keyof typeof languages;

type Each = 'day' | 'week' | 'month';

interface Question {
  readonly account: string;
  readonly start: string;
  readonly end: string;
  readonly each: Each;
  readonly compare?: boolean;
  readonly by?: string;
}

const questions: Record<string, Question> = {
  'four days of 28': { account: 'gaps', start: daysAgo(28), end: daysAgo(1), each: 'day' },
  'a new customer': { account: 'new', start: daysAgo(28), end: daysAgo(1), each: 'day' },
  'one day': { account: 'new', start: daysAgo(3), end: daysAgo(3), each: 'day' },
  '400 days': { account: 'large', start: daysAgo(400), end: daysAgo(1), each: 'day' },
  '400 days by week': { account: 'large', start: daysAgo(400), end: daysAgo(1), each: 'week' },
  '400 days by month': { account: 'large', start: daysAgo(400), end: daysAgo(1), each: 'month' },
  'a comparison': {
    account: 'large',
    start: daysAgo(56),
    end: daysAgo(1),
    each: 'week',
    compare: true,
    by: 'device,creative',
  },
  corrections: { account: 'corrected', start: daysAgo(7), end: daysAgo(1), each: 'day' },
};

/** A day's spend, in events that each hold less than 10^12. */
function spending(account: string, day: number, campaign: string, amount: bigint, cents = ''): EventLine[] {
  const sign = amount < 0n ? '-' : '';
  let left = amount < 0n ? -amount : amount;
  const lines: EventLine[] = [];
  do {
    const part = left > 900_000_000_000n ? 900_000_000_000n : left;
    left -= part;
    lines.push(
      event({
        event_time: `${daysAgo(day)}T08:00:00Z`,
        advertiser_id: account,
        campaign_id: campaign,
        creative_id: `${campaign}-creative`,
        device: day % 2 ? 'mobile' : 'desktop',
        quantity: lines.length === 0 ? Math.min(2 ** 32 - 1, 10 ** (day % 10)) : 1,
        spend: `${sign}${part}${lines.length === 0 ? cents : ''}`,
      }),
    );
  } while (left > 0n);
  return lines;
}

function events(): EventLine[] {
  const lines: EventLine[] = [];
  for (let day = 1; day <= 400; day++) {
    // Gaps of two days, days between gaps, and a gap of seven weeks.
    if ([3, 4, 6].includes(day % 9) || (day > 90 && day < 140)) continue;
    const campaign = `a campaign with a long name, number ${day % 3}`;
    lines.push(
      ...spending('large', day, campaign, 10n ** BigInt(day % 14), `.${String(day).padStart(6, '0')}`),
    );
    if (day % 5 === 0) lines.push(...spending('large', day, 'another', 7n, '.25'));
    if (day % 2)
      lines.push({
        ...event({
          event_time: `${daysAgo(day)}T09:00:00Z`,
          event_type: 'conversion',
          advertiser_id: 'large',
          campaign_id: campaign,
          creative_id: `${campaign}-creative`,
          device: 'mobile',
        }),
      });
  }
  for (const day of [5, 6, 15, 27]) lines.push(...spending('gaps', day, 'boots', BigInt(day), '.5'));
  lines.push(...spending('new', 3, 'first campaign', 1n, '.5'));
  // The total is less than its parts, and a ratio of the whole less than that of a row.
  lines.push(
    ...spending('corrected', 2, 'booked', 10n ** 13n),
    ...spending('corrected', 3, 'taken back', -(10n ** 13n)),
  );
  lines.push(...spending('corrected', 4, 'small', 0n, '.000001'));
  return lines;
}

interface FiguresOnPage {
  open(name: string, size: Size, locale?: Locale): Promise<Shown>;
  readonly browser: TestBrowser;
  readonly service: TestService;
}

function useFigures(): FiguresOnPage {
  const db = useStore();
  const service = useService(db);
  const browser = useBrowser({ withWindows: true });
  beforeAll(() => load(db.store, events()));
  return {
    browser,
    service,
    open: async (name, size, locale = 'en-GB') => {
      const question = questions[name];
      if (!question) throw new Error(`${name} is no question`);
      const { account, start, end, each, compare, by } = question;
      const fields = [
        `days=${start}/${end}`,
        `each=${each}`,
        ...(compare ? ['compare=previous_period'] : []),
        ...(by ? [`by=${by}`] : []),
      ];
      const page = await browser.open('about:blank', { ...sizes[size], locale });
      await page.addInitScript(recordLabels);
      await page.goto(`${service.url}/app#token=${await service.token(account)}&${fields.join('&')}`);
      await whole(page);
      await page.locator('.chart canvas').waitFor();
      return { page, size, locale, question, answer: await ask(service, question) };
    },
  };
}

type Row = Readonly<Record<string, string>>;

interface Shown {
  readonly page: Page;
  readonly size: Size;
  readonly locale: Locale;
  readonly question: Question;
  readonly answer: { readonly rows: readonly Row[]; readonly totals: Row };
}

/** The API's answer, numbers as it writes them. */
async function ask(
  service: TestService,
  { account, start, end, each, compare, by }: Question,
): Promise<Shown['answer']> {
  const path = `/v1/campaigns/breakdowns/${[...(by?.split(',') ?? []), 'date'].join('_')}`;
  const response = await service.post(path, account, {
    start_time: start,
    end_time: end,
    time_grain: each,
    totals: true,
    ...(compare && { compare_to: 'previous_period' }),
  });
  expect(response.status).toBe(200);
  return JSON.parse((await response.text()).replace(/":(-?\d[\d.]*)/g, '":"$1"')).result;
}

/** A decimal in whole units of 10^-6. */
function units(decimal: string): bigint {
  const [, sign, digits = '', places = ''] = /^([-+]?)(\d+)(?:\.(\d{1,6}))?$/.exec(decimal) ?? [];
  if (digits === '') throw new Error(`${decimal} is no decimal`);
  return BigInt(`${sign === '-' ? '-' : ''}${digits}${places.padEnd(6, '0')}`);
}

/** The days, weeks (from Monday) or months of the question, cut to it: counted day by day. */
function periods({ start, end, each }: Question): { start: string; end: string }[] {
  const made: { key: string; start: string; end: string }[] = [];
  for (let time = Date.parse(start); time <= Date.parse(end); time += 86_400_000) {
    const date = new Date(time);
    const day = date.toISOString().slice(0, 10);
    const monday = new Date(time - ((date.getUTCDay() + 6) % 7) * 86_400_000).toISOString().slice(0, 10);
    const key = each === 'day' ? day : each === 'week' ? monday : day.slice(0, 7);
    const last = made.at(-1);
    if (last?.key === key) last.end = day;
    else made.push({ key, start: day, end: day });
  }
  return made;
}

/** What is in view of an amount: cents, rounded half away from zero; every digit of less than a tenth. */
function inView(exact: bigint): bigint {
  if (exact > -100_000n && exact < 100_000n) return exact;
  return ((exact + (exact < 0n ? -5_000n : 5_000n)) / 10_000n) * 10_000n;
}

interface Said {
  readonly when: string;
  /** As in view, in units of 10^-6; undefined where no row is of these days. */
  readonly spent: bigint | undefined;
  readonly before: bigint | undefined;
}

/** What the chart has to say of each point. */
async function pointsOf({ page, locale, question, answer }: Shown): Promise<Said[]> {
  const all = periods(question);
  const names = await page.evaluate(
    ([ranges, locale]) => {
      const days = new Intl.DateTimeFormat(locale, { dateStyle: 'medium', timeZone: 'UTC' });
      return ranges.map(({ start, end }) =>
        start === end ? days.format(Date.parse(start)) : days.formatRange(Date.parse(start), Date.parse(end)),
      );
    },
    [all, locale] as const,
  );
  const { part } = languages[locale].words.chart;
  const sum = (rows: readonly Row[], id: string) =>
    inView(rows.reduce((all, row) => all + units(row[id] ?? ''), 0n));
  const figures = Object.keys(answer.totals).filter((id) => !/_(compared|change)$/.test(id));
  const isCounted = (rows: readonly Row[], part: string) =>
    rows.some((row) => figures.some((id) => Number(row[`${id}${part}`]) !== 0));
  const begins = (day: Date) =>
    question.each === 'month' ? day.getUTCDate() === 1 : question.each !== 'week' || day.getUTCDay() === 1;
  const isPart = (start: string, end: string) =>
    !begins(new Date(start)) || !begins(new Date(Date.parse(end) + 86_400_000));
  return all.map(({ start, end }, n) => {
    const rows = answer.rows.filter((row) => row.start_time === start);
    for (const row of rows) expect(row.end_time).toBe(end);
    const there = rows.length > 0;
    return {
      when: `${names[n]}${isPart(start, end) ? ` (${part[question.each]})` : ''}`,
      spent: there && (!question.compare || isCounted(rows, '')) ? sum(rows, 'spent') : undefined,
      before: question.compare && isCounted(rows, '_compared') ? sum(rows, 'spent_compared') : undefined,
    };
  });
}

/** What the tooltip says; undefined while no tooltip shows. */
async function tooltip({ page, locale }: Shown): Promise<Said | undefined> {
  const lines = await page.evaluate(() => {
    const tip = document.querySelector<HTMLElement>('.tip');
    if (!tip || tip.hidden) return [];
    const within = document.querySelector('.plot')?.getBoundingClientRect();
    const box = tip.getBoundingClientRect();
    const isCut = !within || box.left < within.left || box.right > within.right || box.bottom > within.bottom;
    if (isCut) throw new Error(`the tooltip is cut: ${JSON.stringify([box, within])}`);
    return [...tip.children].map(({ textContent }) => textContent ?? '');
  });
  return lines.length === 0 ? undefined : parsed(lines, locale);
}

function parsed([when = '', amount = '', before]: readonly string[], locale: Locale): Said {
  const { chart } = languages[locale].words;
  return {
    when,
    spent: amount === chart.noFigures ? undefined : units(plain(amount, locale)),
    before: before === undefined ? undefined : units(plain(before.replace(`${chart.before}: `, ''), locale)),
  };
}

async function plotBox(page: Page) {
  await page.locator('.chart').scrollIntoViewIfNeeded();
  const box = await page.locator('.u-over').boundingBox();
  if (!box) throw new Error('there is no chart');
  return box;
}

/** So many places of the chart, in any order, none where two points meet. */
async function places(
  page: Page,
  count: number,
  points: number,
): Promise<{ x: number; y: number; n: number }[]> {
  const random = seededRandom(testSeed);
  const box = await plotBox(page);
  return Array.from({ length: count }, () => {
    for (;;) {
      const x = Math.ceil(box.x) + Math.floor(random() * (box.width - 1));
      const place = ((x - box.x) / box.width) * points;
      const fromEdge = Math.abs(place - Math.round(place));
      if (points > 1 && fromEdge < 0.05) continue;
      return { x, y: box.y + 20 + Math.floor(random() * (box.height - 40)), n: Math.floor(place) };
    }
  });
}

/** Points with the mouse, by jumps: what the tooltip says is what is under the pointer. */
async function comparePointed(shown: Shown, count = 50): Promise<void> {
  const { page } = shown;
  const points = await pointsOf(shown);
  for (const { x, y, n } of await places(page, count, points.length)) {
    await page.mouse.move(x, y);
    expect(await tooltip(shown), `at ${x}, point ${n} of ${points.length}`).toEqual(points[n]);
  }
  await page.mouse.move(1, 1);
  expect(await tooltip(shown)).toBeUndefined();
}

/** Taps, and moves a finger sideways. */
async function compareTouched(shown: Shown, count = 10): Promise<void> {
  const { page } = shown;
  const points = await pointsOf(shown);
  const touched = await places(page, count, points.length);
  for (const { x, y, n } of touched) {
    await page.touchscreen.tap(x, y);
    expect(await tooltip(shown), `a tap at ${x}, point ${n}`).toEqual(points[n]);
  }
  const cdp = await page.context().newCDPSession(page);
  const [first, ...others] = touched.sort((a, b) => a.x - b.x);
  const touch = (type: 'touchStart' | 'touchMove', x: number, y: number) =>
    cdp.send('Input.dispatchTouchEvent', { type, touchPoints: [{ x, y }] });
  if (!first) return;
  await touch('touchStart', first.x, first.y);
  for (const { x, n } of others) {
    await touch('touchMove', x, first.y);
    await expect.poll(() => tooltip(shown), { message: `a finger at ${x}, point ${n}` }).toEqual(points[n]);
  }
  await cdp.send('Input.dispatchTouchEvent', { type: 'touchEnd', touchPoints: [] });
}

/** Goes from point to point with the keys: the tooltip, and what a screen reader is told. */
async function compareWithKeys(shown: Shown): Promise<void> {
  const { page, locale } = shown;
  const { before, noFigures } = languages[locale].words.chart;
  const points = await pointsOf(shown);
  const plot = page.locator('.plot[role=slider]');
  await plot.focus();
  const last = points.length - 1;
  const at = (n: number) => Math.min(last, Math.max(0, n));
  const walk: [string, number][] = [
    ['Home', 0],
    ['ArrowRight', at(1)],
    ['ArrowRight', at(2)],
    ['ArrowLeft', at(at(2) - 1)],
    ['End', last],
    ['ArrowLeft', at(last - 1)],
  ];
  for (const [key, n] of walk) {
    await page.keyboard.press(key);
    expect(await tooltip(shown), `${key}, point ${n}`).toEqual(points[n]);
    const told = ((await plot.getAttribute('aria-valuetext')) ?? '').split(
      new RegExp(`, (?=${before}|${noFigures}|[-\\d])`),
    );
    expect(parsed(told, locale), `${key}, point ${n}`).toEqual(points[n]);
  }
  await plot.blur();
  expect(await tooltip(shown)).toBeUndefined();
}

interface Label {
  readonly text: string;
  readonly x: number;
  readonly width: number;
  readonly align: string;
}

/** Runs in the page: keeps what is written on a canvas since it was last wiped. */
function recordLabels(): void {
  const { fillText, clearRect } = CanvasRenderingContext2D.prototype;
  const written = new WeakMap<HTMLCanvasElement, Label[]>();
  Object.assign(window, { writtenOn: (canvas: HTMLCanvasElement) => written.get(canvas) ?? [] });
  CanvasRenderingContext2D.prototype.clearRect = function (...area) {
    written.set(this.canvas, []);
    clearRect.apply(this, area);
  };
  CanvasRenderingContext2D.prototype.fillText = function (text, x, y, ...more) {
    const label = {
      text,
      x: (x + this.getTransform().e) / devicePixelRatio,
      width: this.measureText(text).width / devicePixelRatio,
      align: this.textAlign,
    };
    written.set(this.canvas, [...(written.get(this.canvas) ?? []), label]);
    fillText.call(this, text, x, y, ...more);
  };
}

/** The axes: the days are those at their place, from the first that was asked for; no number is cut or like another. */
async function compareAxes({ page, locale, question }: Shown): Promise<void> {
  const all = periods(question);
  const { labels, left, width, names } = await page.evaluate(
    ({ all, each, locale }) => {
      const canvas = document.querySelector('.chart canvas') as HTMLCanvasElement;
      const { writtenOn } = window as unknown as { writtenOn(canvas: HTMLCanvasElement): Label[] };
      const over = (document.querySelector('.u-over') as HTMLElement).getBoundingClientRect();
      const years = new Set(all.flatMap(({ start }) => start.slice(0, 4)));
      const format = new Intl.DateTimeFormat(
        locale,
        each === 'month'
          ? { month: 'short', year: 'numeric', timeZone: 'UTC' }
          : { day: 'numeric', month: 'short', ...(years.size > 1 && { year: '2-digit' }), timeZone: 'UTC' },
      );
      return {
        labels: writtenOn(canvas),
        left: over.left - canvas.getBoundingClientRect().left,
        width: over.width,
        names: all.map(({ start }) => format.format(Date.parse(start))),
      };
    },
    { all, each: question.each, locale },
  );
  const days = labels.filter(({ align }) => align === 'center');
  expect(days.length).toBeGreaterThan(all.length > 1 ? 1 : 0);
  for (const { text, x } of days) {
    // A canvas writes at whole pixels, and of 400 days several lie within one.
    const near = names.filter((_, n) => Math.abs(left + ((n + 0.5) / all.length) * width - x) < 1.5);
    expect(near, `the label at ${x}`).toContain(text);
  }
  expect(days[0]?.text).toBe(names[0]);
  if (all.length === 1) expect(days).toHaveLength(1);
  const amounts = labels.filter(({ align }) => align === 'right');
  expect(amounts.length).toBeGreaterThan(1);
  expect(new Set(amounts.map(({ text }) => text)).size).toBe(amounts.length);
  for (const { text, x, width } of amounts) expect(x - width, text).toBeGreaterThanOrEqual(0);
}

/** Where there is a row there is ink, and where none is there is no ink: neither a slope nor a zero. */
async function compareInk(shown: Shown): Promise<void> {
  const { page } = shown;
  const points = await pointsOf(shown);
  const inked = await page.evaluate((count) => {
    const canvas = document.querySelector('.chart canvas') as HTMLCanvasElement;
    const chart = document.querySelector('.chart') as HTMLElement;
    const probe = document.createElement('canvas').getContext('2d') as CanvasRenderingContext2D;
    probe.fillStyle = getComputedStyle(chart).getPropertyValue('--accent').trim();
    probe.fillRect(0, 0, 1, 1);
    const [red = 0, green = 0, blue = 0] = probe.getImageData(0, 0, 1, 1).data;
    const over = (document.querySelector('.u-over') as HTMLElement).getBoundingClientRect();
    const edge = canvas.getBoundingClientRect();
    const context = canvas.getContext('2d') as CanvasRenderingContext2D;
    const room = over.width / count;
    return Array.from({ length: count }, (_, n) => {
      const from = Math.round(devicePixelRatio * (over.left - edge.left + room * (n + 0.25)));
      const wide = Math.max(1, Math.round((devicePixelRatio * room) / 2));
      // The line of the axis' zero lies half outside.
      const { data } = context.getImageData(
        from,
        0,
        wide,
        Math.ceil(devicePixelRatio * (over.bottom - edge.top)) + 2,
      );
      for (let at = 0; at < data.length; at += 4) {
        const far =
          Math.abs((data[at] ?? 0) - red) +
          Math.abs((data[at + 1] ?? 0) - green) +
          Math.abs((data[at + 2] ?? 0) - blue);
        if ((data[at + 3] ?? 0) > 200 && far < 30) return true;
      }
      return false;
    });
  }, points.length);
  expect(inked).toEqual(points.map(({ spent }) => spent !== undefined));
}

/** Each card: its number in sight is that of the API, rounded to cents at most; whole on hover and for a screen reader. */
async function compareCards({ page, locale, answer }: Shown): Promise<void> {
  const { words, tens } = languages[locale];
  const names = new Map(Object.entries(words.columns));
  const places = new Map(Object.entries<bigint>(tens));
  const cards = await page.evaluate(() =>
    [...document.querySelectorAll('.card')].map((card) => {
      const value = card.querySelector('.value') as HTMLElement;
      const range = document.createRange();
      range.selectNodeContents(value);
      const [text, box] = [range.getBoundingClientRect(), card.getBoundingClientRect()];
      return {
        metric: card.querySelector('input')?.value ?? '',
        name: card.querySelector('.name')?.textContent ?? '',
        shown: value.textContent ?? '',
        hovered: value.title,
        told: value.getAttribute('aria-label') ?? '',
        isWhole:
          text.left >= box.left &&
          text.right <= box.right &&
          text.right <= innerWidth &&
          text.bottom <= box.bottom,
      };
    }),
  );
  expect(cards.map(({ metric }) => metric).sort()).toEqual(
    ['conversions', 'cpa', 'cpc', 'cpm', 'impressions', 'referrals', 'spent'].sort(),
  );
  for (const { metric, name, shown, hovered, told, isWhole } of cards) {
    const exact = units(answer.totals[metric] ?? '');
    expect([name, units(plain(hovered, locale)), units(plain(told, locale)), isWhole]).toEqual([
      names.get(metric),
      exact,
      exact,
      true,
    ]);
    const [, number = '', unit] = /^(.*\d)\s?(\D+)?$/.exec(shown) ?? [];
    const off = units(plain(number, locale)) * 10n ** (places.get(unit ?? '') ?? 0n) - exact;
    // Cents, or where a unit says that it is shortened, four digits.
    const most = unit ? (exact < 0n ? -exact : exact) / 2_000n : 5_000n;
    expect(off >= -most && off <= most, `${metric}: ${shown} for ${answer.totals[metric]}`).toBe(true);
    if (exact !== 0n) expect(units(plain(number, locale)), metric).not.toBe(0n);
  }
}

interface SeenCell {
  readonly column: string;
  readonly text: string;
  /** Of a number: every digit, on hover where they are not in view. */
  readonly whole: string;
  readonly isNumber: boolean;
  /** Its text has room in it, or it says with three dots that it is shortened, and on hover what it is. */
  readonly isWhole: boolean;
  /** It lies in sight, and nothing lies over it. */
  readonly isSeen: boolean;
}

/** The cells of the table by row, the row of totals first. */
function cells(page: Page): Promise<{ index: number; cells: SeenCell[] }[]> {
  return page.evaluate(() => {
    const scroller = document.querySelector('regular-table') as HTMLElement;
    const table = scroller.querySelector('table') as HTMLTableElement;
    const view = scroller.getBoundingClientRect();
    const [heads, totals] = table.tHead?.rows ?? [];
    const columns = [...(heads?.cells ?? [])].map((cell) =>
      [...cell.querySelectorAll<HTMLElement>('button.head')].map(({ dataset }) => dataset.column ?? ''),
    );
    const seen = (element: Element, cell: Element) => {
      const box = element.getBoundingClientRect();
      const isIn = box.left >= view.left - 1 && box.right <= view.left + scroller.clientWidth + 1;
      // Rows that are half below the head or the edge are not looked at.
      const [x, y] = [box.left + box.width / 2, box.top + box.height / 2];
      const bottom = Math.min(innerHeight, view.bottom) - 20;
      const top = Math.max(0, table.tHead?.getBoundingClientRect().bottom ?? 0);
      if (!isIn || y > bottom || (cell.closest('tbody') && y < top + 4)) return isIn;
      const hit = document.elementFromPoint(x, y);
      return hit !== null && (cell.contains(hit) || hit.contains(cell));
    };
    const room = (element: HTMLElement) =>
      element.scrollWidth <= element.clientWidth ||
      (getComputedStyle(element).textOverflow === 'ellipsis' &&
        element.title !== '' &&
        innerWidth < 400 &&
        element.clientWidth > 240);
    const read = (row: HTMLTableRowElement, index: number) => ({
      index,
      cells: [...row.cells].flatMap((cell, n) => {
        const lines = [...cell.querySelectorAll<HTMLElement>('[data-column]:not(button)')];
        const isNumber = cell.classList.contains('number');
        if (lines.length > 0) {
          return lines.map((line) => ({
            column: line.dataset.column ?? '',
            text: (line.textContent ?? '').replace('\u00a0', ''),
            whole: '',
            isNumber,
            isWhole: room(line),
            isSeen: seen(line, cell),
          }));
        }
        return [
          {
            column: columns[n]?.[0] ?? '',
            text: cell.textContent ?? '',
            whole: cell.title || (cell.textContent ?? ''),
            isNumber,
            isWhole: room(cell),
            isSeen: seen(cell, cell),
          },
        ];
      }),
    });
    return [
      ...(totals ? [read(totals, -1)] : []),
      ...[...(table.tBodies[0]?.rows ?? [])].map((row) =>
        read(row, Number(row.getAttribute('aria-rowindex')) - 3),
      ),
    ];
  });
}

/** Scrolls the table to these shares of its width and height. */
async function scrollTo(page: Page, x: number, y: number): Promise<void> {
  // The library learns how wide a column is when it comes into sight.
  for (let before = -1; ; ) {
    const left = await page.evaluate(
      async ([x, y]) => {
        const table = document.querySelector('regular-table') as HTMLElement;
        table.scrollTo(
          (table.scrollWidth - table.clientWidth) * x,
          (table.scrollHeight - table.clientHeight) * y,
        );
        for (let n = 0; n < 2; n++) await new Promise(requestAnimationFrame);
        return table.scrollLeft;
      },
      [x, y] as const,
    );
    await settled(page);
    if (left === before) return;
    before = left;
  }
}

/** Every cell, at the ends and in the middle: its figure, whole, and beside it what the row is. */
async function compareTable({ page, locale, question, answer }: Shown): Promise<void> {
  await page.locator('.rows').scrollIntoViewIfNeeded();
  await page.evaluate(() => document.querySelector('.rows')?.scrollIntoView({ block: 'end' }));
  const naming = [
    ...(question.each === 'day' ? ['start_time'] : ['start_time', 'end_time']),
    'campaign',
    ...(question.by?.includes('device') ? ['device'] : []),
    ...(question.by?.includes('creative') ? ['creative_headline', 'creative_id'] : []),
  ];
  const met = new Set<string>();
  for (const [x, y] of [
    [0, 0],
    [0.3, 0.5],
    [0.6, 0.2],
    [1, 1],
  ] as const) {
    await scrollTo(page, x, y);
    const rows = await cells(page);
    expect(rows.length).toBeGreaterThan(1);
    for (const { index, cells } of rows) {
      const row = index < 0 ? answer.totals : answer.rows[index];
      const where = `row ${index} at ${x}, ${y}`;
      for (const { column, text, whole, isNumber, isWhole } of cells) {
        const value = row?.[column] ?? '';
        if (!isNumber) {
          if (index < 0) continue;
          const name = column.endsWith('_time') ? shownDay(value, locale) : value;
          expect([where, column, text]).toEqual([where, column, name]);
          continue;
        }
        met.add(column);
        const exact = units(value);
        const said = [where, column, units(plain(text, locale)), units(plain(whole, locale)), isWhole];
        expect(said).toEqual([where, column, inView(exact), exact, true]);
      }
      if (index >= 0) {
        const named = cells.filter(({ isNumber, isSeen }) => !isNumber && isSeen).map(({ column }) => column);
        expect([where, named]).toEqual([where, naming]);
      }
      // Beside what the row is there is a whole figure, at the first look and at the end.
      if (x === 0 || x === 1) {
        const figures = cells.filter(({ isNumber, isSeen }) => isNumber && isSeen);
        expect(figures.length, where).toBeGreaterThan(0);
      }
    }
  }
  expect(met).toContain('spent');
  expect(met).toContain(question.compare ? 'cpm_change' : 'cpm');
}

/** The Columns menu: its boxes, names and arrows stand in line, and are as large as boxes are. */
async function compareMenu(page: Page): Promise<void> {
  await page.locator('.columns summary').click();
  const lines = await page.evaluate(() =>
    [...document.querySelectorAll('.metrics li')].map((line) =>
      [...line.querySelectorAll('input, label span, button')].map((part) => {
        const { left, width } = part.getBoundingClientRect();
        return [Math.round(left), part.matches('input') ? Math.round(width) : 0];
      }),
    ),
  );
  await page.keyboard.press('Escape');
  expect(lines).toHaveLength(7);
  for (const line of lines) expect(line).toEqual(lines[0]);
  expect(lines[0]?.[0]?.[1]).toBeGreaterThan(8);
  expect(lines[0]?.[0]?.[1]).toBeLessThan(30);
}

const figures = useFigures();

/** Each question on one size at least, each size with days, weeks or months, each language on two sizes. */
const some = [
  ['four days of 28', 'desktop', 'ja-JP'],
  ['one day', 'laptop', 'en-GB'],
  ['400 days by week', 'laptop', 'de-DE'],
  ['400 days by month', 'phone', 'ja-JP'],
] as const;
const others = [
  ['four days of 28', 'phone', 'de-DE'],
  ['a new customer', 'desktop', 'en-GB'],
  ['one day', 'phone', 'ja-JP'],
  ['400 days', 'laptop', 'en-GB'],
  ['400 days', 'phone', 'de-DE'],
  ['400 days by week', 'desktop', 'ja-JP'],
  ['a comparison', 'desktop', 'de-DE'],
  ['a comparison', 'phone', 'en-GB'],
  ['corrections', 'laptop', 'de-DE'],
  ['400 days by week', 'tablet', 'de-DE'],
  ['a comparison', 'tablet', 'ja-JP'],
  ['four days of 28', 'zoomed', 'en-GB'],
  ['400 days by month', 'zoomed', 'ja-JP'],
] as const;

test.each<readonly [string, Size, Locale]>(thorough ? others : some)(
  '%s on a %s in %s: tooltip, axes, cards and table have the figures of the API, whole',
  async (name, size, locale) => {
    const shown = await figures.open(name, size, locale);
    await compareAxes(shown);
    if (shown.size === 'phone') await compareTouched(shown);
    else await comparePointed(shown);
    await compareWithKeys(shown);
    await compareCards(shown);
    await compareTable(shown);
    await compareMenu(shown.page);
    // Where a day has less than a few pixels its neighbours reach into it.
    const { width } = (await shown.page.locator('.u-over').boundingBox()) ?? { width: 0 };
    if (width / periods(shown.question).length > 6) await compareInk(shown);
    expect(figures.browser.complaints).toEqual([]);
  },
);

test.runIf(!thorough)('in a wide comparison, and on a phone, what a row is stays in sight', async () => {
  await compareTable(await figures.open('a comparison', 'laptop'));
  await compareTable(await figures.open('a comparison', 'phone'));
});

test.runIf(!thorough)('a value that is larger than the total has room', async () => {
  await compareTable(await figures.open('corrections', 'phone'));
});

test.runIf(!thorough)('without rows the Columns menu has its boxes', async () => {
  const { account } = questions['one day'] ?? { account: '' };
  const token = await figures.service.token(account);
  const page = await figures.browser.open(
    `${figures.service.url}/app#token=${token}&days=2001-01-01/2001-01-02`,
  );
  await page.getByRole('heading', { name: 'No rows' }).waitFor();
  await compareMenu(page);
});
