import { randomBytes } from 'node:crypto';
import { hostname } from 'node:os';
import { ClickHouseError } from '@clickhouse/client';
import type { Store } from '../../clickhouse/client.ts';
import { isTransient, retrying } from '../../clickhouse/retry.ts';
import { type ListFormat, writeList } from '../../ingest/history/load-history.ts';
import { userName } from '../../ingest/ledger/load-heartbeat.ts';

/** Who does something. */
export interface Actor {
  readonly who: string;
  /** The id of an operator's token; absent: the command line. */
  readonly token?: string;
}

/** `user@host` */
export function commandLine(): Actor {
  return { who: `${userName()}@${hostname()}` };
}

export interface AuditEntry {
  readonly operation: string;
  /** Without secrets. */
  readonly input: unknown;
}

/**
 * Does work that changes something, and records who does it before, and what came of it after. Without the first record nothing
 * is done.
 * @param work what it returns, and what the audit log keeps of that
 */
export async function recorded<T>(
  store: Store,
  { who, token = '' }: Actor,
  { operation, input }: AuditEntry,
  work: () => Promise<{ readonly result: T; readonly outcome: unknown }>,
): Promise<T> {
  const entry = await begin(store, { who, token, operation, input: JSON.stringify(input) });
  // An entry stays begun where what came of it cannot be written: the work has ended all the same.
  const end = (how: Entry) => retrying(() => write(store, { ...entry, ...how })).catch(() => {});
  try {
    const { result, outcome } = await work();
    await end({ state: 'done', outcome: JSON.stringify(outcome) });
    return result;
  } catch (error) {
    // The text of a statement can have the password that nodes of a cluster know each other by.
    const reason =
      error instanceof ClickHouseError
        ? `ClickHouse: ${error.type}`
        : error instanceof Error
          ? error.message
          : String(error);
    // Half of a character, repeated from what was given, is nothing that ClickHouse reads.
    await end({ state: 'failed', error: Buffer.from(reason).toString() });
    throw error;
  }
}

/** Says of the backup that was restored that it was done: it holds itself as begun. */
export async function endRestoredBackup(store: Store): Promise<void> {
  await store.command({
    query: `INSERT INTO audit (* EXCEPT version) SELECT * EXCEPT version REPLACE ('done' AS state) FROM audit AS a FINAL
            WHERE a.operation = 'backup' AND a.state = 'begun' ORDER BY a.id DESC LIMIT 1`,
  });
}

type Entry = Readonly<Record<string, string>>;

/** The id decides the shard, and a shard that is down must not keep a token from being revoked. */
const mostIds = 10;

async function begin(store: Store, said: Entry): Promise<Entry> {
  const time = new Date().toISOString();
  for (let ids = 1; ; ids++) {
    const id = `${time.replace(/\D/g, '')}${randomBytes(4).toString('hex')}`;
    const entry = { id, at: time.slice(0, -1).replace('T', ' '), ...said };
    try {
      await write(store, { ...entry, state: 'begun' });
      return entry;
    } catch (error) {
      if (!(error instanceof Error && isTransient(error)) || ids === mostIds) throw error;
    }
  }
}

async function write(store: Store, entry: Entry): Promise<void> {
  await store.insert({ table: 'audit', values: [entry], format: 'JSONEachRow' });
}

/** Writes the audit log, newest first. @param since only what is as young as this */
export function writeAudit(
  store: Store,
  out: NodeJS.WritableStream,
  format: ListFormat,
  { since = new Date(0), limit }: { readonly since?: Date | undefined; readonly limit: number },
): Promise<void> {
  const selected = `
    SELECT concat(formatDateTime(a.at, '%Y-%m-%dT%H:%i:%S', 'UTC'), 'Z') AS time, who, token, operation,
           toString(a.state) AS state, input, outcome, error
    FROM audit AS a FINAL WHERE a.at >= fromUnixTimestamp64Milli({since:Int64}, 'UTC') ORDER BY id DESC LIMIT {limit:UInt32}`;
  const params = { since: since.getTime(), limit };
  if (format !== 'json') return writeList(store, out, selected, params, format);
  return writeList(store, out, `SELECT ${jsonEntry} FROM (${selected})`, params, format, rawArray);
}

const asText = (column: string) => `'"${column}":', toJSONString(${column})`;
/** Input and outcome are JSON texts, which stand as they were stored: read as JSON they would lose nulls and change times. */
const asStored = (column: string) => `'"${column}":', if(${column} = '', '{}', ${column})`;
const members = [
  ...['time', 'who', 'token', 'operation', 'state'].map(asText),
  ...['input', 'outcome'].map(asStored),
  asText('error'),
];
const jsonEntry = `concat('{', ${members.join(", ',', ")}, '}')`;
const rawArray = `CustomSeparated SETTINGS format_custom_escaping_rule = 'Raw', format_custom_result_before_delimiter = '[',
  format_custom_row_after_delimiter = '', format_custom_row_between_delimiter = ',\n', format_custom_result_after_delimiter = ']\n'`;
