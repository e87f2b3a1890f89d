import { createHash, createHmac, randomBytes, timingSafeEqual } from 'node:crypto';
import * as z from 'zod';
import { changesTable, closedTable } from '../../catalog/breakdowns.ts';
import { catalog } from '../../catalog/catalog.ts';
import { eventColumns } from '../../catalog/events.ts';
import { namesTables } from '../names-tables.ts';
import { besideOf, restoreMark } from '../restoring.ts';
import { rollups } from '../rollups.ts';

const random = z.string().regex(/^[0-9a-f]{64}$/);
export const accessSchema = z.object({
  /** Holders and supervisor prove themselves with it; it is never sent. */
  secret: random,
  passwords: z.object({ adtally: random, reporter: random }),
});

/** What opens an embedded ClickHouse, made anew for each supervisor and kept in a file that only its owner can read. */
export type Access = z.infer<typeof accessSchema>;

export function newAccess(): Access {
  return { secret: newNonce(), passwords: { adtally: newNonce(), reporter: newNonce() } };
}

/** 32 random bytes. */
export function newNonce(): string {
  return randomBytes(32).toString('hex');
}

/** Shows that `party` knows the secret, to whoever chose one of the nonces, and that it says `text`. */
export function proofOf(
  secret: string,
  party: 'holder' | 'supervisor',
  nonces: { readonly holder: string; readonly supervisor: string },
  text: string,
): string {
  const said = JSON.stringify([party, nonces.holder, nonces.supervisor, text]);
  return createHmac('sha256', secret).update(said).digest('hex');
}

/** Compares in constant time. */
export function isProof(given: string, expected: string): boolean {
  const digest = (text: string) => createHash('sha256').update(text).digest();
  return timingSafeEqual(digest(given), digest(expected));
}

/** The variables that config/embedded.xml reads; `databases` are those whose reports the reporter may read. */
export function accessVariables({ passwords }: Access, databases: readonly string[]): Record<string, string> {
  const basic = (user: string, password: string) =>
    `Basic ${Buffer.from(`${user}:${password}`).toString('base64')}`;
  return {
    ADTALLY_PASSWORD: passwords.adtally,
    ADTALLY_BASIC: basic('adtally', passwords.adtally),
    REPORTER_PASSWORD: passwords.reporter,
    REPORTER_BASIC: basic('reporter', passwords.reporter),
    REPORTER_GRANTS: reporterGrants(databases)
      .map((grant) => `<query>GRANT ${grant}</query>`)
      .join(''),
  };
}

/** What the service reads, and nothing else. */
function reporterGrants(databases: readonly string[]): string[] {
  const tables = [
    ...rollups(catalog).map(({ table }) => table),
    ...Object.keys(catalog.families).flatMap((family) => [changesTable(family), closedTable(family)]),
    ...[
      'closes',
      'confirmations',
      'past_names',
      'past_confirmations',
      'past_events',
      'rewrites',
      'tokens',
      'account_limits',
      'account_currencies',
      'sign_outs',
      'schedules',
      'unsubscribed',
      'agreed',
      'mails',
      'loads',
      'migrations',
      'pruned_months',
      'settings',
      'store_state',
      'damaged_parts',
    ],
  ];
  const dictionaries = Object.values(catalog.dimensions).flatMap(({ columns }) =>
    columns.flatMap(({ name }) => name?.dictionary ?? []),
  );
  return [
    ...databases.flatMap((database) => [
      ...tables.map((table) => `SELECT ON ${database}.${table}`),
      ...new Set(dictionaries.map((dictionary) => `dictGet ON ${database}.${dictionary}`)),
      // To learn that parts of them are damaged; dictionaries read them as another user.
      ...namesTables.map((table) => `SHOW TABLES ON ${database}.${table}`),
      // For metrics: how many rejected rows are open and chunks in doubt, and not what is in them; when followers have looked.
      `SELECT(chunk, line, replayed_at, dismissed_at) ON ${database}.rejected_rows`,
      `SELECT(head, chunk, load_id, sent_at, loaded_at) ON ${database}.load_chunks`,
      // For explanations: what an event adds to which row and when, and not which event it is.
      `SELECT(day, ${eventColumns.filter((name) => name !== 'event_id').join(', ')}, chunk, loaded_at) ON ${database}.events`,
      `SELECT(reading, name, version, looked_at) ON ${database}.followed_files`,
      // For /readyz: whether a restore has to be ended.
      ...[database, besideOf(database)].map((name) => `SELECT ON ${name}.${restoreMark}`),
    ]),
    // What changed since an answer was kept; only of tables that the reporter may read.
    'SELECT ON system.parts',
    // What ClickHouse goes on without; likewise.
    'SELECT(database, table, partition_id, name) ON system.detached_parts',
    'SELECT(name, free_space, total_space) ON system.disks',
    'SELECT(metric, value) ON system.metrics',
    // How many rows a report had, or why it broke off, for the log of the service.
    'SELECT(event_date, event_time, type, query_id, result_rows, exception) ON system.query_log',
  ];
}
