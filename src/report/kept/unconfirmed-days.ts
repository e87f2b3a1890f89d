import type { Reader } from '../../../clickhouse/reader.ts';
import { compileUnconfirmedDates } from '../compile.ts';
import { everyDay, type Plan } from '../plan.ts';
import type { Memory } from './memory.ts';

/** The unconfirmed days of accounts. All of an account are kept, because its next report has another range. */
export class UnconfirmedDays {
  readonly #reader: Reader;
  readonly #kept: Memory;
  readonly #underWay = new Map<string, Promise<readonly string[]>>();

  constructor(reader: Reader, kept: Memory) {
    this.#reader = reader;
    this.#kept = kept;
  }

  /**
   * Those of a report's range.
   * @param state what they depend on; undefined if that is unknown, so that nothing can be kept
   */
  async of(plan: Plan, state: string | undefined, signal: AbortSignal): Promise<readonly string[]> {
    if (state === undefined || plan.closed || plan.past) return this.#read(plan, signal);
    const { breakdown, routing, account, days } = plan;
    const key = `days ${breakdown.family} ${routing?.shards} ${account}`;
    const kept = this.#kept.get(key);
    const all =
      (kept?.state === state && kept.days) || (await unlessAborted(signal, this.#readAll(plan, state, key)));
    return all.filter((day) => day >= days.first && day <= days.last);
  }

  async #readAll(plan: Plan, state: string, key: string): Promise<readonly string[]> {
    const flight = `${state} ${key}`;
    const other = this.#underWay.get(flight);
    if (other) return other;
    // Others may be waiting for it, so it does not end with its caller.
    const read = this.#read({ ...plan, days: everyDay });
    this.#underWay.set(flight, read);
    try {
      const days = await read;
      this.#kept.set(key, { state, days });
      return days;
    } finally {
      this.#underWay.delete(flight);
    }
  }

  async #read(plan: Plan, signal?: AbortSignal): Promise<readonly string[]> {
    const statement = compileUnconfirmedDates(plan);
    const rows = await this.#reader.rows<{ day: string }>(statement, signal ? { signal } : {});
    return rows.map(({ day }) => day);
  }
}

/** Others go on to wait for what a caller who has left asked for. */
function unlessAborted<T>(signal: AbortSignal, work: Promise<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    const leave = () => reject(signal.reason);
    if (signal.aborted) leave();
    signal.addEventListener('abort', leave);
    work.then(resolve, reject).finally(() => signal.removeEventListener('abort', leave));
  });
}
