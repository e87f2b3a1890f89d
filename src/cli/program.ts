import { Command } from 'commander';
import type { ChunkSize } from '../../ingest/load/load-events.ts';
import { describeVersion, folderHere, runningVersion } from '../version.ts';
import { addAccountCommands } from './accounts.ts';
import { addExamples } from './help/examples.ts';
import { addHistoryCommands } from './history/commands.ts';
import { addIngestCommands } from './ingest/commands.ts';
import { addServeCommands } from './serve.ts';
import { addClusterCommands } from './store/cluster.ts';
import { addMaintenanceCommands } from './store/maintenance.ts';

const epilogue = `
Settings are environment variables; most used are
  CLICKHOUSE_URL      a ClickHouse server; without it the embedded one, whose data is in DATA_DIR (.data)
  HOST, PORT          where the service listens (127.0.0.1, 8080)
  REDIS_URL           shares request limits between services
  REPORT_TIMEZONE     of days (UTC); fixed when the database is created
docs/configuration.md lists all of them. Operators find docs/operations.md, and alert rules, a dashboard and a Helm chart in deploy/.
These files are in ${folderHere()}

Exit codes: 0 done, 1 failed, 2 wrong usage, 4 loaded but some rows were rejected.`;

/**
 * `adtally` with all of its commands; nothing runs before it parses a command line.
 * @param size of the work of `ingest events`, for tests that interrupt it between two chunks of a small file
 */
export function createProgram(size: ChunkSize = {}): Command {
  const program = new Command('adtally')
    .description('Ad performance reports from ClickHouse: exact, complete, streamed.')
    .version(describeVersion(runningVersion()), '-V, --version', 'print the version and the commit')
    .exitOverride()
    .configureHelp({ showGlobalOptions: true })
    .addHelpText('after', epilogue);
  addServeCommands(program.commandsGroup('Serve:'));
  addIngestCommands(program.commandsGroup('Load:'), size);
  addHistoryCommands(program.commandsGroup('Inspect loads:'));
  addAccountCommands(program.commandsGroup('Accounts:'));
  addMaintenanceCommands(program.commandsGroup('Maintain the database:'));
  addClusterCommands(program.commandsGroup('Cluster:'));
  addExamples(program);
  return program;
}
