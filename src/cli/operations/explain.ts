import { text } from 'node:stream/consumers';
import type { Command } from 'commander';
import { familyOf } from '../../../catalog/breakdowns.ts';
import { catalog } from '../../../catalog/catalog.ts';
import type { Store } from '../../../clickhouse/client.ts';
import { layoutOf } from '../../../clickhouse/cluster/layout.ts';
import { Reader } from '../../../clickhouse/reader.ts';
import { compileExplanation, differs } from '../../report/explain/compile-explanation.ts';
import { explainedRow, rowKeys } from '../../report/explain/explain-request.ts';
import { accountId, day, usage } from '../command/arguments.ts';
import { config, print, withStore } from '../command/command.ts';

interface ExplainFlags {
  readonly from: string;
  readonly to: string;
  readonly json?: boolean;
}

/** `explain`: what a row of a report is made of. */
export function addExplain(program: Command): void {
  program
    .command('explain')
    .description('list the loads, files and chunks that a row of a report is made of')
    .argument('<account>', 'whose report it is', accountId)
    .argument(
      '<row...>',
      'its ids as NAME=ID: campaign_id, device, creative_id; or ad_unit_id, device, site_id',
    )
    .requiredOption('--from <day>', 'the first day of the row', day)
    .requiredOption('--to <day>', 'the last day of the row', day)
    .option('--json', 'print JSON')
    .action((account: string, row: string[], flags: ExplainFlags) =>
      withStore((store) => explainRow(store, account, row, flags)),
    );
}

/** Where a part is in its file. */
const place = ['file', 'first_line', 'first_byte', 'bytes'];

/** Prints what a row of a report is made of, with files and where in them. @throws when the parts are not the row */
async function explainRow(
  store: Store,
  account: string,
  given: readonly string[],
  { from, to, json = false }: ExplainFlags,
): Promise<void> {
  if (to < from) throw usage(`--to ${to} is before --from ${from}`);
  const row = Object.fromEntries(given.map((each) => [each.split('=', 1)[0], each.replace(/^[^=]*=?/, '')]));
  const families = Object.keys(catalog.families);
  const family = families.find((name) => {
    const keys = rowKeys(catalog, name);
    return keys[0] !== undefined && keys[0] in row && Object.keys(row).every((key) => keys.includes(key));
  });
  if (family === undefined) {
    const known = families.map((name) => rowKeys(catalog, name).join(', ')).join('; or ');
    throw usage(`give the ids of one row as NAME=ID, the first of them always: ${known}`);
  }
  const layout = await layoutOf(store);
  const routing = layout && { shards: 'all' as const, database: store.address.database };
  const asked = explainedRow(catalog, family, account, { start_time: from, end_time: to, row }, routing);
  const { query, params, settings } = compileExplanation(catalog, asked, { withFiles: true });
  const figures = Object.keys(familyOf(catalog, family).measures);
  const columns = ['kind', 'load', ...place, 'reason', 'events', ...figures, 'loaded_at', 'confirmed_at'];
  const parts = `SELECT ${columns.map((name) => `e.part.${name} AS ${name}`).join(', ')}
    FROM (SELECT arrayJoin(result.parts) AS part FROM (${query})) AS e\nFORMAT PrettyCompactMonoBlock`;
  const reader = new Reader(store.address, config().reportTimeoutSeconds * 1000);
  try {
    const pretty = {
      output_format_pretty_max_value_width: 200,
      output_format_pretty_color: 0,
      output_format_pretty_row_numbers: 0,
    };
    const statement = { query: json ? `${query}\nFORMAT JSONEachRow` : parts, params };
    const answer = await text(
      await reader.stream({ ...statement, settings: { ...settings, ...pretty, max_threads: 2 } }),
    );
    print(answer.trimEnd());
  } catch (error) {
    if (!differs(error)) throw error;
    throw new Error(
      'the loads do not add up to the row: a load is just arriving, or rollups and events differ; adtally verify tells',
      { cause: error },
    );
  } finally {
    reader.close();
  }
}
