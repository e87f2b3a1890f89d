import { type Store, select } from '../../clickhouse/client.ts';
import { everyCopyOf, insertTargetOnAllNodes } from '../../clickhouse/cluster/on-nodes.ts';
import { digestOf, type Versioned, versionAfter } from './versions.ts';

/** That a person has signed out everywhere: sessions that began before this version are over, whatever the clocks say. */
export interface SignOut extends Versioned {
  /** The subject, as the provider calls the person. */
  readonly person: string;
}

/** Ends all sessions of a person, and no token. */
export async function signOutEverywhere(store: Store, person: string): Promise<void> {
  const target = await insertTargetOnAllNodes(store, 'sign_outs');
  await store.command({
    query: `INSERT INTO ${target} (person, version)
            SELECT {person:String}, ${versionAfter('max(s.version)')}
            FROM ${await everyCopyOf(store, 'sign_outs')} AS s WHERE s.person = {person:String}`,
    query_params: { person },
  });
}

/** The last of each person; with `since`, those of that version or a later one. */
export async function listSignOuts(store: Store, since = '1970-01-01 00:00:00'): Promise<SignOut[]> {
  return select(
    store,
    `SELECT person, toString(s.version) AS version, ${digestOf('s.person, s.version')} AS digest
     FROM sign_outs AS s FINAL WHERE s.version >= toDateTime64({since:String}, 6, 'UTC')`,
    { since },
  );
}
