import { type EventLine, event, ndjson } from '../events.ts';
import { lines, Oracle, type Range, type Recount, type Row } from '../oracle.ts';
import type { Dice } from '../round-files.ts';

export const range: Range = { start: '2026-01-01', end: '2026-12-31' };
/** Where books that are alone have their days. */
export const ownDays = '2026-04-01..2026-04-30';

/** What is loaded at once or not at all: three events of one month. Its bit says that an account has it. */
export interface Unit {
  readonly bit: number;
  readonly events: readonly EventLine[];
}

/** One content that may be loaded, under any name. */
export interface Version {
  readonly name: string;
  readonly units: readonly Unit[];
  /** What is rejected of the file until it is corrected and replayed. */
  readonly rejected: readonly Unit[];
  readonly text: string;
}

/** A file, and what may take its place. */
export interface Book {
  readonly account: string;
  readonly name: string;
  readonly versions: readonly Version[];
  /** Its days have no events of other books: its next version takes the place of whatever is there on them. */
  readonly isAlone: boolean;
}

/** Bits of units. */
export const bitsOf = (units: readonly Unit[]): number => units.reduce((bits, { bit }) => bits | bit, 0);

/** All lines have this length, so that chunks of a multiple of three have whole units. */
const lineLength = 360;
export const unitBytes = 3 * lineLength;
/**
 * How often an event of a unit may be counted before the figures of the next one hide it. An account has ten units at most; more
 * would not fit into the digits of a count.
 */
const base = 32;
/** Makes a device longer than it may be. */
const tooMuch = ` ${'x'.repeat(32)}`;
export const corrected = (text: string): string => text.replaceAll(tooMuch, '');

/**
 * The files of an account. The impressions of a unit are a power of 32, three times, so the sum of any report tells how
 * often each unit is counted.
 */
export class Books {
  readonly account: string;
  readonly list: Book[] = [];
  /** What the last answer had. */
  lastUnits = 0;
  readonly #units: Unit[] = [];
  readonly #oracles = new Map<number, Oracle>();

  constructor(account: string, dice: Dice) {
    this.account = account;
    for (let n = 0; n < 3; n++) {
      const counts = [1 + dice.below(2), 1];
      const isAlone = n === 2;
      const month = () => (isAlone ? 4 : 1 + dice.below(3));
      const versions = counts.map((count, version) =>
        this.#version(`${n}-${version}`, count, month, n + version === 0 ? 1 : 0),
      );
      this.list.push({ account, name: `${n}`, versions, isAlone });
    }
  }

  #version(name: string, count: number, month: () => number, wrong: number): Version {
    const made = (of: number) => Array.from({ length: of }, () => this.#unit(month()));
    const [units, rejected] = [made(count), made(wrong)];
    const text = [
      ...units.flatMap(({ events }) => events),
      ...rejected.flatMap(({ events }) => events.map((line) => ({ ...line, device: line.device + tooMuch }))),
    ];
    return { name, units, rejected, text: text.map(padded).join('') };
  }

  #unit(month: number): Unit {
    const n = this.#units.length;
    const days = [0, 1, 1].map((more) => `2026-0${month}-1${(n % 8) + more}`);
    const quantity = base ** n;
    const events = days.map((day, k) => {
      return event({
        event_id: `${this.account}-${n}-${k}`,
        event_time: `${day}T12:00:00Z`,
        advertiser_id: this.account,
        publisher_id: this.account,
        campaign_id: `c${n % 3}`,
        ad_unit_id: `u${n % 2}`,
        creative_id: `k${k}`,
        site_id: `s${n % 2}`,
        device: ['mobile', 'desktop', 'tablet'][(n + k) % 3] ?? '',
        quantity,
        spend: `${n + 1}.25`,
        revenue: `0.${n + 1}`,
      });
    });
    const unit = { bit: 1 << n, events };
    this.#units.push(unit);
    return unit;
  }

  /** Bits of the units that are in these rows, and of those that are there in part or several times. */
  unitsIn(rows: readonly Row[]): { readonly units: number; readonly odd: number } {
    const sum = rows.reduce((total, { impressions = '0' }) => total + BigInt(`${impressions}`), 0n);
    let [units, odd] = [0, 0];
    for (const [n, { bit }] of this.#units.entries()) {
      const times = Number((sum / BigInt(base) ** BigInt(n)) % BigInt(base));
      if (times > 0) units |= bit;
      if (times !== 0 && times !== 3) odd |= bit;
    }
    return { units, odd };
  }

  /** What a path says to an account that has these units. */
  recount(path: string, units: number): Recount {
    return this.#oracle(units).report(path, this.account, range);
  }

  /** Events that are counted. */
  eventsOf(units: number): EventLine[] {
    return this.#units.filter(({ bit }) => units & bit).flatMap(({ events }) => events);
  }

  #oracle(units: number): Oracle {
    const known = this.#oracles.get(units);
    if (known) return known;
    const oracle = new Oracle();
    oracle.load(this.eventsOf(units));
    this.#oracles.set(units, oracle);
    return oracle;
  }
}

/** A line of the one length, with a count of its own: a quantity could not be as large. */
function padded(line: EventLine): string {
  const counted = ndjson([line])
    .replace('"event_type":"impression",', '')
    .replace('"quantity"', '"impressions"');
  return `${counted.trimEnd().padEnd(lineLength - 1)}\n`;
}

export function sameRows(found: readonly Row[], expected: readonly Row[]): boolean {
  return lines(found).join('\n') === lines(expected).join('\n');
}
