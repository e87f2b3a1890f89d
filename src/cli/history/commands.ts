import type { Command } from 'commander';
import { requireLoad, writeLoad, writeLoads, writeRejects } from '../../../ingest/history/load-history.ts';
import { dismissRejects } from '../../../ingest/rejects/rejected-rows.ts';
import { positiveInteger, usage } from '../arguments.ts';
import { counted, say, withReachableStore, withStore } from '../command.ts';
import { replayRejects } from '../ingest/replay.ts';
import { unloadLoad } from './unload.ts';

interface RejectsFlags {
  readonly json?: boolean;
  readonly csv?: boolean;
  readonly dismiss?: boolean;
}

/** `loads`, `rejects`, `replay` and `unload`: what was loaded, and the rows that were not. */
export function addHistoryCommands(program: Command): void {
  program
    .command('loads')
    .description('list loads, newest first; "loads show LOAD" shows one')
    .argument('[show]')
    .argument('[load]')
    .option('--json', 'print JSON')
    .option('--limit <loads>', 'how many to list', positiveInteger, 50)
    .action(
      (show: string | undefined, load: string | undefined, flags: { json?: boolean; limit: number }) => {
        const { json = false, limit } = flags;
        if (show === undefined) {
          return withReachableStore((store) =>
            writeLoads(store, process.stdout, json ? 'json' : 'table', limit),
          );
        }
        if (show !== 'show' || load === undefined) {
          throw usage('use "adtally loads" for the list or "adtally loads show LOAD" for one load');
        }
        return withReachableStore((store) => writeLoad(store, process.stdout, load, json));
      },
    );
  program
    .command('rejects')
    .description('list rejected rows that are neither replayed nor dismissed')
    .argument('[load...]', 'only those of these loads')
    .option('--json', 'print one JSON object per line; correct "event" and replay the file')
    .option('--csv', 'print CSV; correct the event columns and replay the file')
    .option('--dismiss', 'let go of those of these loads: they are listed and waited for no more')
    .action((loads: string[], { json, csv, dismiss }: RejectsFlags) => {
      if (dismiss && loads.length === 0) throw usage('name the loads: adtally rejects LOAD… --dismiss');
      if (dismiss) {
        return withStore(async (store) => {
          for (const load of loads) await requireLoad(store, load);
          say(`${counted(await dismissRejects(store, loads), 'rejected row')} dismissed`);
        });
      }
      return withReachableStore(async (store) => {
        for (const load of loads) await requireLoad(store, load);
        await writeRejects(store, process.stdout, loads, csv ? 'csv' : json ? 'ndjson' : 'table');
      });
    });
  program
    .command('replay')
    .description('load corrected rejected rows, each of them once')
    .argument('<load>', 'the load that rejected them')
    .argument('<file>', 'the corrected output of "adtally rejects LOAD --csv" or "--json"')
    .option('--dedupe', 'leave out events whose event_id is already loaded on the same days')
    .action((load: string, file: string, { dedupe = false }: { dedupe?: boolean }) =>
      withStore(async (store) => {
        process.exitCode = await replayRejects(store, load, file, dedupe);
      }),
    );
  program
    .command('unload')
    .description('take a load back: its events, and its open rejected rows; the file can be loaded again')
    .argument('<load>', 'its id in the list of loads')
    .option('--dry-run', 'only say what would be taken back')
    .action((load: string, { dryRun = false }: { dryRun?: boolean }) =>
      withStore((store) => unloadLoad(store, load, dryRun)),
    );
}
