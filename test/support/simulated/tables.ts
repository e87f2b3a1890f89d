import { ClickHouseError } from '@clickhouse/client';
import { catalog } from '../../../catalog/catalog.ts';
import { rollups } from '../../../clickhouse/rollups.ts';
import { beginning } from './time.ts';

/** A record that was judged. */
export interface Row {
  readonly chunk: string;
  readonly line: number;
  /** Of an event; absent: the record is rejected. */
  readonly day?: string;
  /** Microseconds. */
  readonly loadedAt: number;
  readonly loadId: string;
}

export interface LoadVersion {
  readonly id: string;
  readonly kind: string;
  readonly dedupe: boolean;
  readonly lock: string;
  readonly host: string;
  readonly pid: number;
  readonly turn: number;
  readonly state: string;
  /** Microseconds, by the clock of the store. */
  readonly version: number;
}

export interface LedgerRow {
  readonly head: string;
  readonly chunk: string;
  readonly loadId: string;
  content: string;
  batch: string;
  bytes: number;
  records: number;
  rows: number;
  rejectedRows: number;
  sentAt: number;
  loadedAt: number;
}

export interface StagedRow extends Row {
  readonly head: string;
}

/** Rows by chunk and day: how many there are. */
export class Counted {
  readonly counts = new Map<string, { chunk: string; day: string; rows: number; loadedAt: number }>();
  /** What keeps parts from being stored twice. */
  readonly tokens = new Set<string>();

  add({ chunk, day = '', loadedAt }: Row): void {
    const key = `${chunk} ${day}`;
    const found = this.counts.get(key);
    if (!found) this.counts.set(key, { chunk, day, rows: 1, loadedAt });
    else {
      found.rows++;
      found.loadedAt = Math.max(found.loadedAt, loadedAt);
    }
  }

  of(chunks: readonly string[]) {
    return [...this.counts.values()].filter(({ chunk }) => chunks.includes(chunk));
  }

  delete(chunks: readonly string[]): void {
    for (const { chunk, day } of this.of(chunks)) this.counts.delete(`${chunk} ${day}`);
  }
}

export const rollupTables = rollups(catalog).map(({ table }) => table);
/** What an event is stored in, each with tokens of its own. */
const eventTables = ['events', 'chunk_days', ...rollupTables];

/** A part that an insert is about to store. */
export interface Part {
  readonly table: string;
  readonly token: string;
  readonly rows: readonly Row[];
}

/** What the engine has of the tables that loads write. */
export class Tables {
  readonly loads: LoadVersion[] = [];
  readonly ledger = new Map<string, LedgerRow>();
  readonly counted = new Map(eventTables.map((table) => [table, new Counted()]));
  readonly rejected = new Map<string, Row>();
  readonly rejectedTokens = new Set<string>();
  readonly withdrawn = new Map<string, Set<string>>();
  readonly staged = new Map<string, StagedRow[]>();
  /** Microseconds: before these tokens may be forgotten, and the engine was another process. */
  forgottenAt = -1;
  startedAt = -1;

  table(name: string): Counted {
    const found = this.counted.get(name);
    if (!found) throw new ClickHouseError({ message: `no table ${name}`, code: '60', type: 'UNKNOWN_TABLE' });
    return found;
  }

  /** The parts that a block makes: of each table one for each month. */
  partsOf(rows: readonly Row[], token: string): Part[] {
    const events = rows.filter(({ day }) => day !== undefined);
    const faulty = rows.filter(({ day }) => day === undefined);
    const months = [...new Set(events.map(monthOf))];
    const parts = eventTables.flatMap((table) =>
      (table === 'chunk_days' ? [''] : months).map((month) => ({
        table,
        token: `${token} ${month}`,
        rows: events.filter((row) => month === '' || monthOf(row) === month),
      })),
    );
    return [...parts, { table: 'rejected_rows', token, rows: faulty }].filter(({ rows }) => rows.length > 0);
  }

  /** @param isLost the engine dies just then: it knows the token, and has not kept the rows */
  store({ table, token, rows }: Part, isLost = false): void {
    const tokens = table === 'rejected_rows' ? this.rejectedTokens : this.table(table).tokens;
    if (tokens.has(token)) return;
    tokens.add(token);
    if (isLost) return;
    for (const row of rows) {
      if (table !== 'rejected_rows') this.table(table).add(row);
      else if (!this.rejected.has(`${row.chunk} ${row.line}`))
        this.rejected.set(`${row.chunk} ${row.line}`, row);
    }
  }

  /** From now on loaders do not rely on what the engine has remembered until now. @returns forgets it */
  age(now: number): () => void {
    this.forgottenAt = now;
    const all = [...[...this.counted.values()].map(({ tokens }) => tokens), this.rejectedTokens];
    const old = all.map((tokens) => [...tokens]);
    return () => {
      for (const [n, tokens] of all.entries()) for (const token of old[n] ?? []) tokens.delete(token);
    };
  }

  rejectedOf(chunks: readonly string[]): Row[] {
    return [...this.rejected.values()]
      .filter(({ chunk }) => chunks.includes(chunk))
      .sort((a, b) => a.line - b.line);
  }

  /** What is held back of a batch, each record once however often it was sent. */
  heldOnce(batch: string): StagedRow[] {
    const rows = this.staged.get(batch) ?? [];
    return [...new Map(rows.map((row) => [`${row.chunk} ${row.line}`, row])).values()];
  }

  record(row: LedgerRow): void {
    const key = `${row.head} ${row.chunk} ${row.loadId}`;
    const found = this.ledger.get(key);
    if (!found) {
      this.ledger.set(key, row);
      return;
    }
    if (row.content > found.content) found.content = row.content;
    if (row.batch > found.batch) found.batch = row.batch;
    for (const name of ['bytes', 'records', 'rows', 'rejectedRows', 'sentAt', 'loadedAt'] as const)
      found[name] = Math.max(found[name], row[name]);
  }

  ledgerRows(heads: readonly string[]): LedgerRow[] {
    return [...this.ledger.values()].filter(({ head }) => heads.includes(head));
  }
}

const monthOf = ({ day = '' }: Row): string => day.slice(0, 7);

/** `yyyy-mm-dd hh:mm:ss.ffffff` of microseconds since the beginning. */
export function timeText(us: number): string {
  if (us < 0) return '1970-01-01 00:00:00.000000';
  const ms = Math.floor(us / 1000);
  return `${new Date(beginning + ms).toISOString().slice(0, 23).replace('T', ' ')}${String(us % 1000).padStart(3, '0')}`;
}

export function timeOf(text: string): number {
  if (text.startsWith('1970')) return -1;
  const [, toMs = '', rest = '0'] = /^(.{19}(?:\.\d{3})?)(\d*)$/.exec(text) ?? [];
  return (Date.parse(`${toMs.replace(' ', 'T')}Z`) - beginning) * 1000 + Number(rest.padEnd(3, '0'));
}
