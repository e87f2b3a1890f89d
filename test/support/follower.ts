import { setTimeout as delay } from 'node:timers/promises';
import { select } from '../../clickhouse/client.ts';
import { retrying } from '../../clickhouse/retry.ts';
import type { ChangesAnswer } from '../../src/report/changes/changes.ts';
import type { TestStore } from './store.ts';

interface Row {
  readonly start_time: string;
}

/** Asks a service for JSON; gives the result and how many bytes it took, unpacked. */
export type Ask = (path: string, body: object) => Promise<{ result: unknown; bytes: number }>;

/** What somebody knows who keeps a copy of a family's reports and fetches only what changed. */
export class Follower {
  readonly #ask: Ask;
  readonly #family: string;
  readonly #breakdown: string;
  #since = '1970-01-01T00:00:00Z';
  /** By day: its rows in their order. */
  readonly rows = new Map<string, string[]>();
  readonly unconfirmed = new Set<string>();
  asked = 0;
  bytes = 0;
  daysPulled = 0;

  constructor(ask: Ask, family: string, breakdown: string) {
    this.#ask = ask;
    this.#family = family;
    this.#breakdown = breakdown;
  }

  async follow(): Promise<void> {
    const asked = await this.#ask(`/v1/${this.#family}/changes`, { changed_since: this.#since });
    const { days, changed_until, names_changed_at } = asked.result as ChangesAnswer;
    this.bytes += asked.bytes;
    for (const { day, unconfirmed } of days) {
      if (unconfirmed) this.unconfirmed.add(day);
      else this.unconfirmed.delete(day);
    }
    const renamed = names_changed_at !== null && Date.parse(names_changed_at) >= Date.parse(this.#since);
    const wanted = new Set(days.map(({ day }) => day));
    if (renamed) for (const day of this.rows.keys()) wanted.add(day);
    await this.#pull(wanted, renamed ? undefined : this.#since);
    this.#since = changed_until;
    this.asked++;
  }

  /** @param since of the days whose rows are to come; undefined: of all in between */
  async #pull(wanted: ReadonlySet<string>, since: string | undefined): Promise<void> {
    if (wanted.size === 0) return;
    const days = [...wanted].sort();
    const pulled = await reportOf(this.#ask, this.#path, days[0] ?? '', days.at(-1) ?? '', since);
    this.bytes += pulled.bytes;
    this.daysPulled += wanted.size;
    for (const day of wanted) {
      const rows = pulled.rows.get(day);
      if (rows) this.rows.set(day, rows);
      else this.rows.delete(day);
    }
  }

  get #path(): string {
    return `/v1/${this.#family}/breakdowns/${this.#breakdown}`;
  }

  /** How the copy differs from what the store says now; empty if it does not. */
  async differences(): Promise<string[]> {
    const { rows, unconfirmed } = await reportOf(this.#ask, this.#path, '1970-01-01', '2149-06-06');
    const all = [...new Set([...rows.keys(), ...this.rows.keys()])].sort();
    return [
      ...all
        .filter((day) => rows.get(day)?.join() !== this.rows.get(day)?.join())
        .map(
          (day) => `${this.#path} of ${day}: the copy has ${this.rows.get(day)}, the store ${rows.get(day)}`,
        ),
      ...[...this.unconfirmed]
        .filter((day) => !unconfirmed.includes(day))
        .map((day) => `${day} is confirmed, not so in the copy`),
      ...unconfirmed
        .filter((day) => !this.unconfirmed.has(day))
        .map((day) => `${day} is unconfirmed, not so in the copy`),
    ];
  }
}

/** The rows of a report by their days. */
export async function reportOf(
  ask: Ask,
  path: string,
  start_time: string,
  end_time: string,
  changed_since?: string,
) {
  const { result, bytes } = await ask(path, { start_time, end_time, changed_since });
  const report = result as { rows: Row[]; unconfirmed_revenue_dates: string[] };
  const rows = new Map<string, string[]>();
  for (const row of report.rows) {
    const of = rows.get(row.start_time) ?? [];
    of.push(JSON.stringify(row));
    rows.set(row.start_time, of);
  }
  return { rows, unconfirmed: report.unconfirmed_revenue_dates, bytes };
}

/** A killed loader leaves statements that still run. */
export async function statementsEnded(db: TestStore): Promise<void> {
  const query = `SELECT count() AS running FROM system.processes WHERE query_kind IN ('Insert', 'Alter', 'Exchange', 'Rename')`;
  for (;;) {
    const counts = await Promise.all(
      db.shards.map((shard) => retrying(() => select<{ running: string }>(shard, query))),
    );
    if (counts.flat().every(({ running }) => Number(running) === 0)) return;
    await delay(50);
  }
}
