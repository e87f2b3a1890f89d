import { text } from 'node:stream/consumers';
import type { Command } from 'commander';
import { familyOf } from '../../../catalog/breakdowns.ts';
import { catalog } from '../../../catalog/catalog.ts';
import type { Store } from '../../../clickhouse/client.ts';
import { historyTables, requireWholeStore } from '../../../clickhouse/consistency/damaged-parts.ts';
import type { Reader, ReadStatement } from '../../../clickhouse/reader.ts';
import type { FormatName } from '../../../ingest/formats/formats.ts';
import { type MappingFlags, readMapping } from '../../../ingest/mapping/read-mapping.ts';
import { validateMapping } from '../../../ingest/mapping/validate-mapping.ts';
import { withReader } from '../../close/with-reader.ts';
import { allShardsOf } from '../../report/all-shards.ts';
import { questionedBy } from '../../report/damage.ts';
import { compileExplanation, differs } from '../../report/explain/compile-explanation.ts';
import { explainedRow, rowKeys } from '../../report/explain/explain-request.ts';
import { accountId, day, requireRange, usage } from '../command/arguments.ts';
import { line, print, say, withStore } from '../command/command.ts';
import { addMappingOptions } from '../command/mapping-options.ts';
import { tableOf } from '../command/table.ts';
import { type ChunkPlace, describeLines, explainedLines } from './explained-lines.ts';

interface ExplainFlags extends MappingFlags {
  readonly from: string;
  readonly to: string;
  readonly movedTo?: string;
  readonly allFiles?: boolean;
  readonly format?: FormatName;
  readonly json?: boolean;
}

/** `explain`: what a row of a report is made of. */
export function addExplain(program: Command): void {
  const command = program
    .command('explain')
    .description(
      'list the loads, files and chunks that a row of a report is made of, and the lines that have it',
    )
    .argument('<account>', 'whose report it is', accountId)
    .argument(
      '<row...>',
      'its ids as NAME=ID: campaign_id, device, creative_id; or ad_unit_id, device, site_id',
    )
    .requiredOption('--from <day>', 'the first day of the row', day)
    .requiredOption('--to <day>', 'the last day of the row', day)
    .option('--moved-to <folder>', 'where files are that are not any more where they were loaded')
    .option('--all-files', 'read all that is to be read of files; without it about 1 GiB')
    .option('--json', 'print JSON');
  addMappingOptions(command).action((account: string, row: string[], flags: ExplainFlags) =>
    withStore((store) => withReader(store, (reader) => explainRow(store, reader, account, row, flags))),
  );
}

/** Prints what a row of a report is made of, with files and where in them. @throws when the parts are not the row */
async function explainRow(
  store: Store,
  reader: Reader,
  account: string,
  given: readonly string[],
  flags: ExplainFlags,
): Promise<void> {
  const { from, to, json = false } = flags;
  requireRange(flags);
  const row = Object.fromEntries(given.map((each) => [each.split('=', 1)[0], each.replace(/^[^=]*=?/, '')]));
  const families = Object.keys(catalog.families);
  const isNamed = given.every((each) => each.includes('=')) && Object.keys(row).length === given.length;
  const family = families.find((name) => {
    const keys = rowKeys(catalog, name);
    return (
      isNamed &&
      keys[0] !== undefined &&
      keys[0] in row &&
      Object.keys(row).every((key) => keys.includes(key))
    );
  });
  if (family === undefined) {
    const known = families.map((name) => rowKeys(catalog, name).join(', ')).join('; or ');
    throw usage(`give the ids of one row as NAME=ID, each once and the first always: ${known}`);
  }
  const mapping = await validateMapping(store, await readMapping(flags));
  const days = { start_time: from, end_time: to };
  const asked = explainedRow(catalog, family, account, { ...days, row }, await allShardsOf(store));
  const statement = compileExplanation(asked, { withFiles: true });
  const questioned = questionedBy(asked.plan, historyTables);
  try {
    const settings = { ...statement.settings, max_threads: 2 };
    const explained = { ...statement, query: `${statement.query}\nFORMAT JSONEachRow`, settings };
    await requireWholeStore(store, questioned);
    const answer = (await text(await reader.stream(explained))).trimEnd();
    await requireWholeStore(store, questioned);
    const { parts } = (JSON.parse(answer) as { result: { parts: readonly Part[] } }).result;
    if (parts.length === 0) say('no event of these days adds to such a row');
    else if (!json) for (const each of await tableOf(reader, partsTable(family, answer))) print(each);
    const { format, movedTo, allFiles } = flags;
    const looked = { mapping, format, movedTo, maxBytes: allFiles ? Number.POSITIVE_INFINITY : 1 << 30 };
    const lines = await explainedLines(store, reader, asked, placesIn(parts), looked);
    // The figures stay as ClickHouse wrote them: they may have more digits than a number of JavaScript.
    if (json) print(`${answer.slice(0, -1)},"lines":${JSON.stringify(lines)}}`);
    else for (const told of describeLines(lines)) print(line([told]));
  } catch (error) {
    if (!differs(error)) throw error;
    throw new Error(
      'the loads do not add up to the row: a load is just arriving, or rollups and events differ; adtally verify tells',
      { cause: error },
    );
  }
}

/** The statement of the table that people see of the parts of an answer. */
function partsTable(family: string, answer: string): ReadStatement {
  const figures = Object.entries(familyOf(catalog, family).measures).map(
    ([name, { type }]) => `${name} ${type === 'Money' ? 'Decimal(38, 6)' : 'UInt128'}`,
  );
  const texts = (...names: string[]) => names.map((name) => `${name} Nullable(String)`);
  const counts = (...names: string[]) => names.map((name) => `${name} Nullable(UInt64)`);
  const columns = [
    ...texts('kind', 'load', 'file'),
    ...counts('first_line', 'first_byte', 'bytes'),
    ...texts('reason'),
    ...counts('events'),
    ...figures,
    ...texts('loaded_at', 'confirmed_at'),
  ];
  const names = columns.map((column) => column.split(' ')[0]);
  return {
    query: `SELECT ${names.map((name) => `part.${name} AS ${name}`).join(', ')}
      FROM (SELECT arrayJoin(result.parts) AS part FROM answer)`,
    params: {},
    settings: {},
    tables: {
      answer: {
        structure: `result Tuple(parts Array(Tuple(${columns.join(', ')})))`,
        format: 'JSONEachRow',
        bytes: [Buffer.from(answer)],
      },
    },
  };
}

/** Where the chunks of an answer are; of several parts of a chunk, which have other reasons, one. */
function placesIn(parts: readonly Part[]): ChunkPlace[] {
  const places = parts.flatMap(({ kind, chunk, file }) =>
    kind !== 'replay' && chunk && file ? [[chunk, { chunk, file }] as const] : [],
  );
  return [...new Map(places).values()];
}

interface Part {
  readonly kind: string;
  readonly chunk: string | null;
  readonly file: string | null;
}
