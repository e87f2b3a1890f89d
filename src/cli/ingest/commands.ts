import { type Command, Option } from 'commander';
import type { ChunkSize } from '../../../ingest/load/load-events.ts';
import { confirm, lists } from '../../operations/lists.ts';
import {
  accountId,
  cellDelimiter,
  duration,
  endpoint,
  eventDays,
  pause,
  rejectLimit,
  share,
  textEncoding,
} from '../command/arguments.ts';
import { withStore } from '../command/command.ts';
import { addMappingOptions, encodingOption, formatOption } from '../command/mapping-options.ts';
import { addEventFields } from '../help/event-fields.ts';
import { addOperation } from '../operations/operate.ts';
import { ingestEvents } from './events.ts';
import { confirmAccount, ingestLists, type ListFlags } from './lists.ts';

/** `ingest` and `confirm`. */
export function addIngestCommands(program: Command, size: ChunkSize): void {
  const ingest = program.command('ingest').description('load events, names or confirmations');
  const places = 'files, folders, quoted patterns, s3://, gs:// or az:// addresses, or - for standard input';
  const endpointOption = () =>
    new Option('--endpoint <url>', 'of the objects: a store other than that of the provider').argParser(
      endpoint,
    );
  const followOption = () =>
    new Option('--follow <time>', 'go on looking for new files, this often: 60s, 5m').argParser(pause);
  const events = ingest
    .command('events')
    .description('load events')
    .argument('<file...>', places)
    .optionsGroup('What is loaded:')
    .option('--dry-run', 'check everything and load nothing')
    .option('--suggest', 'look at the beginning of a file and print a mapping for it; load nothing')
    .option('--max-rejects <N|P%>', 'stop before the chunk that exceeds this number or share', rejectLimit)
    .option('--dedupe', 'skip events whose event_id is already loaded on the same days')
    .option('--again', 'also load what was loaded before through another mapping: it counts twice')
    .addOption(followOption())
    .option('--replaces <load>', 'take the place of what this load has loaded, in one step')
    .option(
      '--replaces-days <days>',
      'take the place of all events of --of on these days, whichever load brought them: 2026-10-31..2026-11-02',
      eventDays,
    )
    .option('--of <account>', 'advertiser or publisher of --replaces-days', accountId)
    .option('--max-change <P%>', 'replace nothing if a sum of what is replaced moves further', (text) =>
      Number(share(text)),
    )
    .option(
      '--since <time>',
      'of patterns with {yyyy}, {MM}, {dd}, {HH}: the days and hours since then, 2d',
      duration,
    )
    .option('--move-to <folder>', 'move files there that are loaded, also those that were loaded before')
    .addOption(endpointOption())
    .option('--quiet', 'no progress bar')
    .option('--json', 'print a summary as JSON');
  addMappingOptions(events).action((files: string[], flags) =>
    withStore(
      async (store) => {
        if (flags.suggest) {
          const { suggestMappingOf } = await import('./suggest.ts');
          await suggestMappingOf(store, files, flags);
        } else process.exitCode = await ingestEvents(store, files, flags, size);
      },
      { mayBeNew: true },
    ),
  );
  addEventFields(events);
  for (const name of Object.keys(lists) as (keyof typeof lists)[]) {
    ingest
      .command(name)
      .description(lists[name].summary)
      .argument('<file...>', places)
      .addOption(formatOption())
      .addOption(encodingOption().argParser(textEncoding))
      .option('--delimiter <character>', 'between cells, if no comma (CSV) or tab (TSV)', cellDelimiter)
      .addOption(followOption())
      .addOption(endpointOption())
      .action((files: string[], flags: ListFlags) =>
        withStore((store) => ingestLists(store, name, files, flags), { mayBeNew: true }),
      );
  }
  addOperation(program, confirm, ['account'], confirmAccount);
}
