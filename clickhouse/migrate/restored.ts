import { type Address, closing, connect, type Store, select } from '../client.ts';
import { quoted } from '../quoted.ts';
import { besideOf, restoreMark } from '../restoring.ts';
import { dictionaryStatements, schemaStatements, statementsForNode } from './migration-files.ts';

/**
 * How a restored database takes the place of another, so that a kill at any moment leaves the old data or the new.
 *
 * What a backup has is restored, migrated and verified in a database beside. A database is whole while it has the table
 * `migrations`; that of the new one waits under the name of the mark until the new one has taken the place of the old.
 * So what exists tells what there is to do:
 *
 * | the database has `migrations` | the mark exists | |
 * | --- | --- | --- |
 * | yes | – | it is whole; what lies beside is left over |
 * | no | yes | the old one is given up, the new one is complete: `takePlace` ends it |
 * | no | no | there is no store |
 */

/** Of a rewrite of the whole store. */
export const everyMonth = 0;

/** The ledger until the views are there: a load that began before would store events in no rollup, or nowhere. */
const waitingLedger = 'restored_loads';

type Credentials = Pick<Address, 'user' | 'password'>;

/** Says that the database beside is complete. @param from the backup, as the command was given it */
export async function markRestored(server: Store, database: string, from: string): Promise<void> {
  const beside = besideOf(database);
  await server.command({ query: `ALTER TABLE ${beside}.migrations MODIFY COMMENT ${quoted(from)}` });
  await server.command({ query: `RENAME TABLE ${beside}.migrations TO ${beside}.${restoreMark}` });
}

/**
 * Takes over into the database beside who signed out everywhere, so that no session holds again, and who got which mail, who wants
 * mails, and what became of the schedules that it has, so that no mail is sent again. Of each row the later version counts.
 * @returns whether the old data could be read
 */
export async function keepSince(server: Store, database: string): Promise<boolean> {
  const beside = besideOf(database);
  // A schedule that was made since has no token there.
  const sources = {
    sign_outs: '',
    unsubscribed: '',
    agreed: '',
    mails: '',
    schedules: `WHERE id IN (SELECT id FROM ${beside}.schedules)`,
  };
  try {
    for (const [table, which] of Object.entries(sources)) {
      await server.command({
        query: `INSERT INTO ${beside}.${table} SELECT * FROM ${database}.${table} ${which}`,
      });
    }
    return true;
  } catch {
    return false;
  }
}

/** The backup whose restore has to be ended. To be asked of a database without `migrations`. */
export async function unfinishedRestore(address: Address): Promise<string | undefined> {
  return closing(connect({ ...address, database: 'default' }), async (server) => {
    const { database } = address;
    const [found] = await select<{ comment: string }>(
      server,
      `SELECT comment FROM system.tables WHERE database IN {databases:Array(String)} AND name = '${restoreMark}'`,
      { databases: [database, besideOf(database)] },
    );
    return found?.comment;
  });
}

/**
 * Puts the complete database beside in the place of the old one, which is dropped first. Killed at any moment, it can
 * be repeated, and ends what it began.
 *
 * Views name the tables of their database, and a `RENAME` does not change them (tried, 26.7): views that came with the
 * backup would read and fill nothing, or what they should not. So they are dropped before, and made afterwards.
 * @param names whom dictionaries read as; by default the user of the address
 */
export async function takePlace(address: Address, names?: Credentials): Promise<void> {
  const { database } = address;
  const beside = besideOf(database);
  return closing(connect({ ...address, database: 'default' }), async (server) => {
    const run = (query: string) => server.command({ query });
    if (await isThere(server, beside, restoreMark)) {
      await dropDerived(server, beside);
      await run(`RENAME TABLE IF EXISTS ${beside}.loads TO ${beside}.${waitingLedger}`);
      await run(`CREATE DATABASE IF NOT EXISTS ${database}`);
      // From here on the old one is given up.
      await run(`DROP TABLE IF EXISTS ${database}.migrations SYNC`);
      await run(`DROP DATABASE ${database} SYNC`);
      await run(`RENAME DATABASE ${beside} TO ${database}`);
    }
    await createDerived(address, names);
    await run(`RENAME TABLE IF EXISTS ${database}.${waitingLedger} TO ${database}.loads`);
    // Before the mark goes: after a kill in between nobody would end the rewrite of this restore, and no moment could be told
    // any more.
    await run(`INSERT INTO ${database}.rewrites (month, began_at, ended_at) SELECT month, began_at, now64(6, 'UTC')
               FROM ${database}.rewrites AS r FINAL WHERE month = ${everyMonth} AND r.ended_at = 0`);
    await run(`RENAME TABLE ${database}.${restoreMark} TO ${database}.migrations`);
  });
}

/** Drops views and dictionaries: what reads other tables, and has nothing of its own. */
export async function dropDerived(server: Store, database: string): Promise<void> {
  const derived = await select<{ name: string; kind: string }>(
    server,
    `SELECT name, if(engine = 'Dictionary', 'DICTIONARY', 'TABLE') AS kind FROM system.tables
     WHERE database = {database:String} AND engine IN ('MaterializedView', 'View', 'Dictionary')`,
    { database },
  );
  for (const { name, kind } of derived) {
    await server.command({ query: `DROP ${kind} IF EXISTS ${database}.${name} SYNC` });
  }
}

/** Creates the views and dictionaries of this version. */
async function createDerived(address: Address, names: Credentials = address): Promise<void> {
  const views = (await schemaStatements()).filter((statement) =>
    /^CREATE (MATERIALIZED )?VIEW/.test(statement),
  );
  const dictionaries = (await dictionaryStatements()).flatMap((statement) =>
    // No dictionary of a single node has days.
    statementsForNode(statement, { ...address, ...names, timezone: '' }),
  );
  return closing(connect(address), async (store) => {
    for (const view of views) {
      await store.command({ query: view.replace(' VIEW ', ' VIEW IF NOT EXISTS ') });
    }
    for (const { query } of dictionaries) await store.command({ query });
  });
}

async function isThere(server: Store, database: string, name: string): Promise<boolean> {
  const found = await select(
    server,
    'SELECT 1 FROM system.tables WHERE database = {database:String} AND name = {name:String}',
    { database, name },
  );
  return found.length > 0;
}
