import { join } from 'node:path';
import type { Store } from '../../../clickhouse/client.ts';
import { mappedReading } from '../../../ingest/event/reading.ts';
import type { FormatName } from '../../../ingest/formats/formats.ts';
import { loadEvents } from '../../../ingest/load/load-events.ts';
import { readMapping } from '../../../ingest/mapping/read-mapping.ts';
import { validateMapping } from '../../../ingest/mapping/validate-mapping.ts';
import { expandFiles } from '../../../ingest/places/expand-files.ts';
import { readBeginning } from '../../../ingest/suggest/beginning.ts';
import { knownExports } from '../../../ingest/suggest/known-exports.ts';
import { suggestMapping } from '../../../ingest/suggest/suggest-mapping.ts';
import { folderHere } from '../../config/version.ts';
import { usage } from '../command/arguments.ts';
import { print, quotedForShell, say } from '../command/command.ts';
import { objectStores } from './object-stores.ts';

interface SuggestFlags {
  readonly suggest?: boolean;
  readonly format?: FormatName;
  readonly encoding?: string;
  readonly endpoint?: string;
  readonly header?: boolean;
  readonly [flag: string]: unknown;
}

/**
 * `ingest events --suggest`: a mapping on standard output; on standard error its reasons, the command that loads with it,
 * and the first events as they would be.
 */
export async function suggestMappingOf(
  store: Store,
  args: readonly string[],
  { suggest: _, format, encoding, endpoint, header, ...others }: SuggestFlags,
): Promise<void> {
  const [other] = Object.keys(others);
  if (other !== undefined)
    throw usage(
      `--suggest goes with --format, --encoding, --no-header and --endpoint only, not with ${other}`,
    );
  const [file, ...more] = await expandFiles(args, objectStores(endpoint));
  if (!file || more.length > 0) throw usage('--suggest looks at one file');
  const beginning = await readBeginning(file, { format, encoding, header });
  const { mapping, reasons } = suggestMapping(await knownExports(join(folderHere(), 'examples')), beginning);
  const content = JSON.stringify(mapping, null, 2);
  print(content);
  for (const reason of reasons) say(reason);
  const questions = Object.entries(mapping.fill_in ?? {});
  // Expressions as they stand in the mapping.
  for (const [field, question] of questions)
    say(`to fill in: ${field}: ${JSON.stringify(question).slice(1, -1)}`);
  const isAccount = (field: string) => field === 'advertiser_id' || field === 'publisher_id';
  const accounts = questions.map(([field]) => field).filter(isAccount);
  const answers = accounts.map((field) => ` --set ${field}=…`).join('');
  const named = `${format ? ` --format ${format}` : ''}${endpoint ? ` --endpoint ${quotedForShell(endpoint)}` : ''}`;
  say(
    `\nwith it in mapping.json: adtally ingest events${named} --mapping mapping.json${answers} ${quotedForShell(file.name)}\n`,
  );
  if (questions.some(([field]) => !isAccount(field))) return;
  const set = accounts.map((field) => `${field}=…`);
  const valid = await validateMapping(
    store,
    await readMapping({ mapping: { name: 'the suggestion', content }, set }),
  );
  const { encoding: __, records: ___, ...asSampled } = valid;
  const { rows, leftOutRows } = await loadEvents({
    store,
    input: beginning.sample,
    format,
    reading: mappedReading(file.name, { ...asSampled, records: [] }, say),
    roundMoney: valid.roundMoney,
    timezone: valid.timezone?.name,
    dates: valid.dates,
    dryRun: true,
    now: () => new Date(),
    onSample: (table) => say(table.trimEnd()),
    onRejected: (_row, text) => say(text),
  });
  if (rows === 0 && leftOutRows > 0)
    say(`${file.name}: where leaves out all of the first records: ${mapping.where}`);
}
