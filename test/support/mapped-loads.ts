import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { select } from '../../clickhouse/client.ts';
import { mappedReading } from '../../ingest/event/reading.ts';
import { LocalFile } from '../../ingest/input/local-file.ts';
import { loadEvents } from '../../ingest/load/load-events.ts';
import { type MappingFlags, readMapping } from '../../ingest/mapping/read-mapping.ts';
import { validateMapping } from '../../ingest/mapping/validate-mapping.ts';
import { useFolder } from './folder.ts';
import { useStore } from './store.ts';

/** What a load came to: the fields asked for of each event, and the faults of each rejected row. */
export interface MappedLoad {
  readonly events: readonly (readonly unknown[])[];
  readonly rejected: readonly string[];
  /** Records that the condition left out. */
  readonly leftOut: number;
}

/** Loads through mappings, on a database of the test file. */
export function useMappedLoads() {
  const db = useStore();
  const folder = useFolder();
  let made = 0;
  const warned: string[] = [];

  const written = async (name: string, content: string | Buffer) => {
    await writeFile(join(folder, name), content);
    return join(folder, name);
  };
  /** Loads a file through a mapping. */
  const load = async (flags: MappingFlags, file: string, fields: string): Promise<MappedLoad> => {
    const valid = await validateMapping(db.store, await readMapping(flags));
    const rejected: string[] = [];
    const { loadId, leftOutRows } = await loadEvents({
      store: db.store,
      input: new LocalFile(file),
      chunkBytes: 1 << 20,
      // Texts of several tests may begin alike.
      again: true,
      reading: mappedReading(file, valid, (text) => warned.push(text)),
      ...(valid.timezone && { timezone: valid.timezone.name }),
      ...(valid.dates && { dates: valid.dates }),
      roundMoney: valid.roundMoney,
      now: () => new Date(),
      onRejected: ({ line, faults }) =>
        rejected.push(...faults.map(({ field, reason }) => `${line} ${field} ${reason}`)),
    });
    const events = await select<Record<string, unknown>>(
      db.store,
      `SELECT ${fields} FROM events
       WHERE chunk IN (SELECT chunk FROM load_chunks WHERE load_id = {loadId:String}) ORDER BY ALL`,
      { loadId },
    );
    return { events: events.map((event) => Object.values(event)), rejected, leftOut: leftOutRows };
  };
  return {
    db,
    /** What was warned of, by all loads. */
    warned: warned as readonly string[],
    load,
    /** Flags with a mapping file of this content. */
    inFile: async (mapping: unknown, name = `mapping-${++made}.json`) => ({
      mapping: await written(name, typeof mapping === 'string' ? mapping : JSON.stringify(mapping)),
    }),
    /** Loads text, which is CSV unless told otherwise, of an account of its own. */
    loadText: async (flags: MappingFlags, text: string | Buffer, fields: string, ending = 'csv') => {
      const account = `mapped-${++made}`;
      const set = [...(flags.set ?? []), `advertiser_id=${account}`, 'campaign_id=c'];
      return load({ ...flags, set }, await written(`${account}.${ending}`, text), fields);
    },
    /** What is said against a mapping. */
    refusal: async (flags: MappingFlags): Promise<string> => {
      try {
        await validateMapping(db.store, await readMapping(flags));
      } catch (error) {
        return error instanceof Error ? error.message : String(error);
      }
      return 'nothing';
    },
  };
}
