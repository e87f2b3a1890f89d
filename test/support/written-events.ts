import { seededRandom } from './random.ts';
import type { Counted } from './recount.ts';

/** The fields of a record, as texts; absent where there is nothing. */
export type Fields = Readonly<Partial<Record<string, string>>>;

/** One record in the ways that it may be written, and what it comes to. */
export interface WrittenEvent {
  /** Any form that a time or a number may have as text. */
  readonly fields: Fields;
  /** The same with times as `yyyy-mm-dd hh:mm:ss.mmm` and plain numbers, for columns of other types than text. */
  readonly plain: Fields;
  /** What it is once it is right. */
  readonly counted: Counted;
  /** What is wrong with it; absent in an event. */
  readonly wrong?: { readonly field: string; readonly value: string };
}

export interface WrittenOptions {
  readonly seed: number;
  readonly count: number;
  /** All accounts begin with it. */
  readonly prefix: string;
  /** Share of bad rows. */
  readonly bad: number;
  /** Every record has an event id. */
  readonly ids?: boolean;
  /** Every time is the begin of a day. */
  readonly daysOnly?: boolean;
}

const wrongs: readonly (readonly [field: string, value: string])[] = [
  ['event_time', ''],
  ['event_time', '1960-01-01 00:00:00.000'],
  ['campaign_id', ''],
  ['device', 'a device whose name is longer than it may be'],
  ['site_id', 'x'.repeat(129)],
  ['reason', 'x'.repeat(65)],
];

/** Records of every form, some of them bad. */
export function writtenEvents({
  seed,
  count,
  prefix,
  bad,
  daysOnly = false,
  ids = false,
}: WrittenOptions): WrittenEvent[] {
  const random = seededRandom(seed);
  const below = (limit: number) => Math.floor(random() * limit);
  const one = <T>(...choices: readonly [T, ...T[]]): T => choices[below(choices.length)] ?? choices[0];
  const id = (n: number) =>
    one(
      'a',
      'b',
      `n${n}`,
      'ü 夏 😀',
      ' blank ',
      "it's",
      'a,b;c|d',
      'say "hi"',
      'two\nlines',
      'tab\tbed',
      'back\\slash',
      '007',
    );
  const count_ = () => one(0, 0, 1, below(9), below(100_000), 999_999_999_999_999);
  const amount = () =>
    BigInt(one(0, 1, -1, below(1e9) - 5e8, below(9) * 1_000_000, below(9) * 500_000, below(9) * 20));
  const types = ['ad_requests', 'impressions', 'referrals', 'conversions', 'revenue'] as const;

  return Array.from({ length: count }, (_, n): WrittenEvent => {
    const ms =
      Date.UTC(2026, below(3), 1 + below(28)) +
      (daysOnly ? 0 : one(0, 1000, 60_000) * below(86_400_000 / 60_000));
    const time = new Date(ms + (daysOnly ? 0 : one(0, 0, below(1000)))).toISOString();
    const sides = one('both', 'both', 'advertiser', 'publisher');
    const counts = { ad_requests: 0n, impressions: 0n, referrals: 0n, conversions: 0n };
    const fields: Record<string, string> = { event_id: random() < 0.1 && !ids ? '' : `${prefix}${n}` };
    if (random() < 0.5) {
      for (const name of Object.keys(counts) as (keyof typeof counts)[]) {
        if (random() < 0.3 && name !== 'impressions') continue;
        counts[name] = BigInt(count_());
        fields[name] = String(counts[name]);
      }
    } else {
      const type = one(...types);
      const quantity = one(undefined, 1 + below(9), 1 + below(100_000), 4_294_967_295);
      fields.event_type = type === 'revenue' ? type : type.slice(0, -1);
      if (quantity !== undefined) fields.quantity = String(quantity);
      if (type !== 'revenue') counts[type] = BigInt(quantity ?? 1);
    }
    const names = (side: boolean, entries: Record<string, string>) => (side ? entries : {});
    const spend = amount();
    const revenue = amount();
    const device = one('', 'mobile', 'TV');
    const confirmed = one('', 'true', 'false');
    Object.assign(fields, {
      ...names(sides !== 'publisher', {
        advertiser_id: `${prefix}a${below(2)}`,
        campaign_id: id(n),
        creative_id: one('', id(n)),
      }),
      ...names(sides !== 'advertiser', {
        publisher_id: `${prefix}p${below(2)}`,
        ad_unit_id: id(n),
        site_id: one('', id(n)),
      }),
      ...{ device, confirmed, spend: one(decimal(spend)), revenue: decimal(revenue) },
      ...(n % 5 === 2 && { reason: n % 2 ? 'makegood' : 'ungültig, "x"' }),
    });
    if (spend === 0n && random() < 0.5) delete fields.spend;
    const stored = time.replace('T', ' ').slice(0, -1);
    const counted = {
      ...{
        event_id: '',
        advertiser_id: '',
        campaign_id: '',
        creative_id: '',
        publisher_id: '',
        ad_unit_id: '',
        site_id: '',
      },
      ...Object.fromEntries(Object.entries(fields).filter(([name]) => name.endsWith('_id'))),
      ...counts,
      ...{ event_time: stored, device: device || 'unknown', spend, revenue, confirmed: confirmed === 'true' },
      reason: fields.reason ?? '',
    };
    const plain = { ...fields, event_time: stored };
    const formed: Record<string, string> = { event_time: timeForm(time, one) };
    for (const [name, text] of Object.entries(fields)) {
      const isMoney = name === 'spend' || name === 'revenue';
      const isCount = Object.hasOwn(counts, name) || name === 'quantity';
      formed[name] = name === 'confirmed' ? one(text, ...flagForms(text)) : text;
      if (isMoney || isCount) formed[name] = one(...numberForms(text));
    }
    if (random() >= bad) return { fields: formed, plain, counted };
    const [field, value] = one(...(wrongs as readonly [(typeof wrongs)[0], ...typeof wrongs]));
    const fit =
      (field !== 'campaign_id' || fields.advertiser_id) && (field !== 'site_id' || fields.publisher_id);
    if (!fit || fields.event_id === '') return { fields: formed, plain, counted };
    return {
      ...{ fields: { ...formed, [field]: value }, plain: { ...plain, [field]: value }, counted },
      wrong: { field, value: formed[field] ?? '' },
    };
  });
}

/** An instant in every form that keeps all of it. */
function timeForm(iso: string, one: <T>(...choices: readonly [T, ...T[]]) => T): string {
  const at = new Date(iso);
  const naive = iso.slice(0, -1);
  const shifted = (minutes: number) => new Date(at.getTime() + minutes * 60_000).toISOString().slice(0, -1);
  const forms = [
    ...[
      iso,
      naive,
      naive.replace('T', ' '),
      `${shifted(330)}+05:30`,
      `${shifted(-480)}-0800`,
      `${shifted(120)}+02`,
    ],
    ...[`${at.getTime()}`, `${naive.replace('.', ',')}Z`, (at.getTime() / 1000).toFixed(3)],
  ];
  if (iso.endsWith('.000Z'))
    forms.push(iso.replace('.000Z', 'Z'), `${at.getTime() / 1000}`, naive.slice(0, -4));
  if (iso.endsWith(':00.000Z')) forms.push(`${naive.slice(0, 16)}`, `${naive.slice(0, 16)}Z`);
  if (iso.endsWith('T00:00:00.000Z')) forms.push(iso.slice(0, 10), iso.slice(0, 10));
  return one(iso, ...forms);
}

/** A plain number in other forms of the same value. */
function numberForms(text: string): readonly [string, ...string[]] {
  const forms = [text.includes('.') ? `${text}0` : `${text}.0`, `${text}e0`];
  if (!text.includes('.')) forms.push(`${text}.`, `${text}.000000000`);
  if (!text.startsWith('-')) forms.push(`+${text}`);
  if (text.startsWith('0.')) forms.push(text.slice(1));
  const scaled = /^(-?)0\.0*([1-9]\d*)$/.exec(text);
  if (scaled) forms.push(`${scaled[1]}${scaled[2]}e-${String(text.split('.')[1]?.length).padStart(2, '0')}`);
  if (/^[1-9]\d*0$/.test(text)) forms.push(`${text.slice(0, -1)}E+1`);
  return [text, text, ...forms];
}

function flagForms(text: string): string[] {
  if (text === 'true') return ['1', 'True', 'TRUE'];
  return text === 'false' ? ['0', 'False'] : [''];
}

function decimal(amount: bigint): string {
  const digits = String(amount < 0n ? -amount : amount).padStart(7, '0');
  return `${amount < 0n ? '-' : ''}${digits.slice(0, -6)}.${digits.slice(-6)}`.replace(/\.?0+$/, '');
}
