import { Readable } from 'node:stream';
import { setTimeout as delay } from 'node:timers/promises';
import type { Store } from '../../../clickhouse/client.ts';
import { deadAfterMs } from '../../../clickhouse/timings.ts';
import type { Answer, Statement } from './state.ts';

type Fields = [string, unknown][];

const times = /\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{6}/g;
/** What differs by nature: where a load runs, and why a row was rejected. */
const apart = ['host', 'pid', 'faults', '1'];

/**
 * Sends the statements of a simulated round to a real engine, in the order in which they were done.
 * @returns where the answers differ; a time stands for the one that the engine gave in its place
 */
export class Replay {
  readonly #store: Store;
  readonly #times = new Map<string, string>();
  readonly differences: string[] = [];

  constructor(store: Store) {
    this.#store = store;
  }

  async send(statement: Statement, simulated: Answer): Promise<void> {
    const told = simulated instanceof Error ? [] : simulated;
    let found = await this.#answerOf(statement);
    // A statement may be listed for a moment when its caller has its answer.
    if (/ FROM system\.processes /.test(statement.query) && told.length === 0)
      for (let n = 0; found.length > 0 && n < 200; n++) {
        await delay(50);
        found = await this.#answerOf(statement);
      }
    // How they differ is told in other words.
    if (/both_sides AS/.test(statement.query)) {
      if ((found.length === 0) !== (told.length === 0)) this.#differ(statement, found, told);
    } else this.#compare(statement, fieldsOf(found), fieldsOf(told));
  }

  async #answerOf({ query, params, settings, data }: Statement): Promise<readonly object[]> {
    const real = (text: string) => text.replace(times, (time) => this.#times.get(time) ?? time);
    const query_params = JSON.parse(real(JSON.stringify(params)));
    // In the time of the simulation no load falls silent for so long; on a slow machine it would here.
    const patient = query.replaceAll(`toIntervalMillisecond(${deadAfterMs})`, 'toIntervalHour(1)');
    const asked = { query: real(patient), query_params, clickhouse_settings: settings };
    if (/^(SELECT|WITH)/.test(query)) {
      return (await this.#store.query({ ...asked, format: 'JSONEachRow' })).json<object>();
    }
    const [, format] = / FORMAT (\w+)$/.exec(query) ?? [];
    if (!format) await this.#store.command(asked);
    else {
      const body = format === 'JSONEachRow' ? Buffer.from(real(`${data}`)) : data;
      const [, into = '', select = ''] = /^(INSERT INTO )(.*)$/s.exec(asked.query) ?? [];
      const values = Readable.from([`${select}\n`, body], { objectMode: false });
      await (await this.#store.exec({ ...asked, query: into, values })).stream.resume().toArray();
    }
    return [];
  }

  /** In their order where the statement has one. */
  #compare(statement: Statement, real: readonly Fields[], simulated: readonly Fields[]): void {
    const text = (rows: readonly Fields[]) =>
      rows.map((row) => JSON.stringify(Object.fromEntries([...row].sort(([a], [b]) => (a < b ? -1 : 1)))));
    const isOrdered = / ORDER BY (?!.*\))/.test(statement.query);
    const [ours, theirs] = [text(real), text(simulated)].map((rows) =>
      isOrdered ? rows : this.#sorted(rows),
    );
    const [foundTimes, toldTimes] = [ours, theirs].map((rows) => `${rows}`.match(times) ?? []);
    for (const [n, told] of (toldTimes ?? []).entries()) this.#times.set(told, foundTimes?.[n] ?? 'no time');
    if (`${ours}` !== `${theirs}`.replace(times, (told) => this.#times.get(told) ?? told))
      this.#differ(statement, real, simulated);
  }

  #sorted = (rows: readonly string[]): string[] =>
    [...rows].sort((a, b) => (a.replace(times, '') < b.replace(times, '') ? -1 : 1));

  #differ({ query }: Statement, real: unknown, simulated: unknown): void {
    this.differences.push(
      `${query.slice(0, 200)}\n  engine    ${JSON.stringify(real)}\n  simulated ${JSON.stringify(simulated)}`,
    );
  }
}

const fieldsOf = (rows: readonly object[]): Fields[] =>
  rows.map((row) => Object.entries(row).filter(([name]) => !apart.includes(name)));
