import { LosslessNumber, parse, stringify } from 'lossless-json';
import type { EventLine } from './events.ts';
import type { TestService } from './service.ts';

/** Numbers are kept as the digits they are written with. */
export type Row = Record<string, string | LosslessNumber>;
export interface Range {
  readonly start: string;
  readonly end: string;
}
export interface Recount {
  readonly rows: Row[];
  readonly unconfirmed_revenue_dates: string[];
}

export type Key = 'day' | 'campaign' | 'ad_unit' | 'device' | 'creative' | 'site';
export type NameList = 'campaigns' | 'creatives' | 'ad_units' | 'sites';

/** The paths of the contract, by hand, with what orders their rows: the day, then the other keys. */
export const groupings: Readonly<Record<string, readonly Key[]>> = {
  '/v1/campaigns': ['campaign'],
  '/v1/campaigns/breakdowns/date': ['day', 'campaign'],
  '/v1/campaigns/breakdowns/creative': ['campaign', 'creative'],
  '/v1/campaigns/breakdowns/device': ['campaign', 'device'],
  '/v1/campaigns/breakdowns/device_creative': ['campaign', 'device', 'creative'],
  '/v1/campaigns/breakdowns/device_date': ['day', 'campaign', 'device'],
  '/v1/campaigns/breakdowns/creative_date': ['day', 'campaign', 'creative'],
  '/v1/campaigns/breakdowns/device_creative_date': ['day', 'campaign', 'device', 'creative'],
  '/v1/ad_units': ['ad_unit'],
  '/v1/ad_units/breakdowns/date': ['day', 'ad_unit'],
  '/v1/ad_units/breakdowns/site': ['ad_unit', 'site'],
  '/v1/ad_units/breakdowns/device': ['ad_unit', 'device'],
  '/v1/ad_units/breakdowns/device_site': ['ad_unit', 'device', 'site'],
  '/v1/ad_units/breakdowns/device_date': ['day', 'ad_unit', 'device'],
  '/v1/ad_units/breakdowns/site_date': ['day', 'ad_unit', 'site'],
  '/v1/ad_units/breakdowns/device_site_date': ['day', 'ad_unit', 'device', 'site'],
  '/v1/ad_units/breakdowns/devices': ['ad_unit', 'device'],
  '/v1/ad_units/breakdowns/devices_and_site': ['ad_unit', 'device', 'site'],
};
export const paths: readonly string[] = Object.keys(groupings);

export interface Counted {
  readonly event: EventLine;
  readonly keys: Readonly<Record<Key, string>>;
  /** Position of its load in the history. */
  readonly loaded: number;
}

/** An independent recount, event by event, of everything the service may be asked. */
export class Oracle {
  readonly #dayOf: (time: Date) => string;
  /** By account: its events as an advertiser or as a publisher. */
  readonly #events = { advertiser: new Map<string, Counted[]>(), publisher: new Map<string, Counted[]>() };
  readonly #names = new Map<string, string>();
  readonly #confirmed = new Map<string, number>();
  #history = 0;

  constructor(timeZone = 'UTC') {
    const day = new Intl.DateTimeFormat('sv-SE', { timeZone, dateStyle: 'short' });
    this.#dayOf = (time) => day.format(time);
  }

  load(events: readonly EventLine[]): void {
    const loaded = ++this.#history;
    for (const event of events) {
      const keys = {
        day: this.#dayOf(timeOf(event.event_time)),
        campaign: event.campaign_id ?? '',
        ad_unit: event.ad_unit_id ?? '',
        device: event.device || 'unknown',
        creative: event.creative_id ?? '',
        site: event.site_id ?? '',
      };
      const counted = { event, keys, loaded };
      add(this.#events.advertiser, event.advertiser_id, counted);
      add(this.#events.publisher, event.publisher_id, counted);
    }
  }

  /** Rows of account, id and name; the last one wins. */
  name(list: NameList, rows: readonly (readonly [string, string, string])[]): void {
    for (const [account, id, name] of rows) this.#names.set(JSON.stringify([list, account, id]), name);
  }

  confirm(account: string, days: readonly string[]): void {
    const now = ++this.#history;
    for (const day of days) this.#confirmed.set(JSON.stringify([account, day]), now);
  }

  /** The events that a path tells the account of. */
  counted(path: string, account: string): readonly Counted[] {
    return this.#events[path.startsWith('/v1/campaigns') ? 'advertiser' : 'publisher'].get(account) ?? [];
  }

  nameOf(list: NameList, account: string, id: string, otherwise: string): string {
    return this.#names.get(JSON.stringify([list, account, id])) ?? otherwise;
  }

  report(path: string, account: string, { start, end }: Range): Recount {
    const keys = groupings[path];
    if (!keys) throw new Error(`the contract has no path ${path}`);
    const advertiser = path.startsWith('/v1/campaigns');
    const owned = this.counted(path, account).filter(({ keys: { day } }) => start <= day && day <= end);
    const groups = new Map<string, Counted[]>();
    for (const counted of owned) {
      add(groups, JSON.stringify(keys.map((key) => counted.keys[key])), counted);
    }
    const ordered = [...groups.values()].sort(([a], [b]) => (a && b ? compareKeys(keys, a, b) : 0));
    const rows = ordered.map((group) => this.#row(path, account, keys, { start, end }, group));
    return { rows, unconfirmed_revenue_dates: this.#unconfirmedDates(owned, account, advertiser) };
  }

  #row(path: string, account: string, keys: readonly Key[], range: Range, group: Counted[]): Row {
    const [first] = group;
    if (!first) throw new Error('a group has events');
    const { day, campaign, ad_unit, device, creative, site } = first.keys;
    const advertiser = path.startsWith('/v1/campaigns');
    const named = (list: NameList, id: string, otherwise: string) =>
      this.nameOf(list, account, id, otherwise);
    return {
      start_time: keys.includes('day') ? day : range.start,
      end_time: keys.includes('day') ? day : range.end,
      ...(advertiser
        ? { campaign: named('campaigns', campaign, campaign) }
        : { ad_unit: named('ad_units', ad_unit, ad_unit) }),
      ...(keys.includes('device') && { device }),
      ...(keys.includes('creative') && {
        creative_headline: named('creatives', creative, ''),
        creative_id: creative,
      }),
      ...(keys.includes('site') && { site: named('sites', site, site) }),
      ...(advertiser ? campaignFigures : adUnitFigures)(group.map(({ event }) => event)),
    };
  }

  #unconfirmedDates(owned: readonly Counted[], account: string, advertiser: boolean): string[] {
    const unconfirmed = owned.filter(({ event, keys: { day }, loaded }) => {
      const money = micros(advertiser ? event.spend : event.revenue);
      const confirmedAt = this.#confirmed.get(JSON.stringify([account, day])) ?? 0;
      return money !== 0n && !event.confirmed && loaded > confirmedAt;
    });
    return [...new Set(unconfirmed.map(({ keys: { day } }) => day))].sort();
  }
}

export function campaignFigures(events: readonly EventLine[]): Row {
  const impressions = count(events, 'impression');
  const conversions = count(events, 'conversion');
  const referrals = count(events, 'referral');
  const spent = sum(events.map(({ spend }) => micros(spend)));
  return {
    cpa: decimal(divide(spent, conversions)),
    cpc: decimal(divide(spent, referrals)),
    cpm: decimal(divide(1000n * spent, impressions)),
    impressions: whole(impressions),
    conversions: whole(conversions),
    referrals: whole(referrals),
    spent: decimal(spent),
  };
}

export function adUnitFigures(events: readonly EventLine[]): Row {
  const requests = count(events, 'ad_request');
  const impressions = count(events, 'impression');
  const referrals = count(events, 'referral');
  const revenue = sum(events.map((event) => micros(event.revenue)));
  return {
    estimated_revenue: decimal(revenue),
    ad_requests: whole(requests),
    impressions: whole(impressions),
    referrals: whole(referrals),
    cpm: decimal(divide(1000n * revenue, impressions)),
    fill_rate: decimal(divide(1_000_000n * impressions, requests)),
    rtr: decimal(divide(1_000_000n * referrals, impressions)),
  };
}

function add(groups: Map<string, Counted[]>, group: string | undefined, counted: Counted): void {
  if (!group) return;
  const members = groups.get(group);
  if (members) members.push(counted);
  else groups.set(group, [counted]);
}

const sum = (amounts: readonly bigint[]): bigint => amounts.reduce((total, amount) => total + amount, 0n);
const count = (events: readonly EventLine[], type: EventLine['event_type']): bigint =>
  sum(events.map((event) => (event.event_type === type ? BigInt(event.quantity ?? 1) : 0n)));

/** Rounded half away from zero; 0 where the denominator is 0. */
function divide(numerator: bigint, denominator: bigint): bigint {
  if (denominator === 0n) return 0n;
  const size = numerator < 0n ? -numerator : numerator;
  const rounded = (2n * size + denominator) / (2n * denominator);
  return numerator < 0n ? -rounded : rounded;
}

/** What the service answers, in the form of a recount. */
export async function answer(
  service: TestService,
  path: string,
  account: string,
  { start, end }: Range,
): Promise<Recount> {
  const response = await service.post(path, account, { start_time: start, end_time: end });
  const text = await response.text();
  if (response.status !== 200) throw new Error(`${path} of ${account}: ${response.status} ${text}`);
  return (parse(text) as { result: Recount }).result;
}

/** One line of text a row: fields, their order and every digit count. */
export const lines = (rows: readonly Row[]) => rows.map((row) => stringify(row));

/** Millionths of a decimal with up to 6 places. */
export function micros(text = '0'): bigint {
  const [, minus = '', units = '', places = ''] = /^(-?)(\d+)(?:\.(\d{1,6}))?$/.exec(text) ?? [];
  if (units === '') throw new Error(`${text} is not a decimal with up to 6 places`);
  return BigInt(`${minus}${units}${places.padEnd(6, '0')}`);
}

export function decimal(amount: bigint): LosslessNumber {
  const digits = `${amount < 0n ? -amount : amount}`.padStart(7, '0');
  const text = `${digits.slice(0, -6)}.${digits.slice(-6)}`.replace(/\.?0+$/, '');
  return new LosslessNumber(`${amount < 0n ? '-' : ''}${text}`);
}

const whole = (amount: bigint): LosslessNumber => new LosslessNumber(`${amount}`);

/** A date-time without an offset is in UTC. */
function timeOf(text: string): Date {
  return new Date(/(Z|[+-]\d\d:\d\d)$/.test(text) ? text : `${text.replace(' ', 'T')}Z`);
}

/** By code point, which is the order of the bytes of UTF-8 (and not the order of JavaScript strings). */
export function compareKeys(
  keys: readonly Key[],
  a: Pick<Counted, 'keys'>,
  b: Pick<Counted, 'keys'>,
): number {
  for (const key of keys) {
    const order = Buffer.compare(Buffer.from(a.keys[key]), Buffer.from(b.keys[key]));
    if (order !== 0) return order;
  }
  return 0;
}
