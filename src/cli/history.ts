import type { Command } from 'commander';
import { requireLoad, writeLoad, writeLoads, writeRejects } from '../../ingest/load/load-history.ts';
import { positiveInteger, usage } from './arguments.ts';
import { withStore } from './command.ts';
import { replayRejects } from './ingest/replay.ts';

/** `loads`, `rejects` and `replay`: what was loaded, and the rows that were not. */
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
          return withStore((store) => writeLoads(store, process.stdout, json ? 'json' : 'table', limit));
        }
        if (show !== 'show' || load === undefined) {
          throw usage('use "adtally loads" for the list or "adtally loads show LOAD" for one load');
        }
        return withStore((store) => writeLoad(store, process.stdout, load, json));
      },
    );
  program
    .command('rejects')
    .description('list rejected rows that have not been replayed')
    .argument('[load...]', 'only those of these loads')
    .option('--json', 'print one JSON object per line; correct "event" and replay the file')
    .option('--csv', 'print CSV; correct the event columns and replay the file')
    .action((loads: string[], { json, csv }: { json?: boolean; csv?: boolean }) =>
      withStore(async (store) => {
        for (const load of loads) await requireLoad(store, load);
        await writeRejects(store, process.stdout, loads, csv ? 'csv' : json ? 'ndjson' : 'table');
      }),
    );
  program
    .command('replay')
    .description('load corrected rejected rows, each of them once')
    .argument('<load>', 'the load that rejected them')
    .argument('<file>', 'the corrected output of "adtally rejects LOAD --csv" or "--json"')
    .action((load: string, file: string) =>
      withStore(async (store) => {
        process.exitCode = await replayRejects(store, load, file);
      }),
    );
}
