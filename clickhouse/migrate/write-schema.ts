import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { closing, connect, type Store, select } from '../client.ts';
import { acquireEmbedded } from '../embedded/embedded.ts';
import { migrate } from './migrate.ts';

/** The whole schema on one page, as the migrations leave it; `npm run schema` writes it. */
export const schemaFile = fileURLToPath(new URL('../schema.sql', import.meta.url));

/** The CREATE statements of every table, dictionary and view of a migrated store, in an order that can be run. */
export async function describeSchema(store: Store): Promise<string> {
  const tables = await select<{ statement: string }>(
    store,
    `SELECT if(engine = 'MaterializedView', formatQuerySingleLine(create_table_query), formatQuery(create_table_query)) AS text,
            replaceAll(replaceAll(text, concat(currentDatabase(), '.'), ''),
                       concat('DB ''', currentDatabase(), ''''), 'DB ''adtally''') AS statement
     FROM system.tables WHERE database = currentDatabase() AND name NOT LIKE '.inner%'
     ORDER BY multiIf(engine = 'MaterializedView', 3, engine = 'Dictionary', 2, 1), name != 'events', name`,
  );
  const page = tables.map(({ statement }) => {
    // Leave out the columns of a view, which are those of its table, and its DEFINER.
    const view = statement.replace(
      /^(CREATE MATERIALIZED VIEW \w+ TO \w+) \(.*?\)( DEFINER.*?)? AS /,
      '$1 AS ',
    );
    return `${view};\n`;
  });
  return `-- The schema as the migrations leave it. Written by npm run schema; the reasons are in migrations/.\n\n${page.join('\n')}`;
}

async function main(): Promise<void> {
  const dataDir = await mkdtemp(join(tmpdir(), 'adtally-schema-'));
  const lease = await acquireEmbedded(dataDir);
  try {
    const address = { ...lease.address, database: 'adtally' };
    await migrate(address);
    await writeFile(schemaFile, await closing(connect(address), describeSchema));
  } finally {
    await lease.release();
    await rm(dataDir, { recursive: true, force: true });
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await main();
