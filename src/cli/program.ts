import { Command } from 'commander';
import type { ChunkSize } from '../../ingest/load/load-events.ts';
import { describeVersion, folderHere, runningVersion } from '../config/version.ts';
import { addExamples } from './help/examples.ts';

const epilogue = `
Settings are environment variables; most used are
  CLICKHOUSE_URL      a ClickHouse server; without it the embedded one, whose data is in DATA_DIR (.data)
  HOST, PORT          where the service listens (127.0.0.1, 8080)
  REDIS_URL           shares request limits between services
  REPORT_TIMEZONE     of days (UTC); fixed when the database is created
docs/configuration.md lists all of them. Operators find docs/operations.md, and alert rules, a dashboard and a Helm chart in deploy/.
These files are in ${folderHere()}

Exit codes: 0 done, 1 failed, 2 wrong usage, 4 loaded but some rows were rejected.`;

/** Commands that share their code, each with its heading in the help. */
const groups: readonly {
  readonly heading: string;
  readonly commands: readonly string[];
  readonly load: () => Promise<(program: Command, size: ChunkSize) => void>;
}[] = [
  {
    heading: 'Serve:',
    commands: ['serve', 'demo', 'receive', 'clickhouse'],
    load: async () => (await import('./serve.ts')).addServeCommands,
  },
  {
    heading: 'Load:',
    commands: ['ingest', 'confirm'],
    load: async () => (await import('./ingest/commands.ts')).addIngestCommands,
  },
  {
    heading: 'Inspect loads:',
    commands: ['loads', 'rejects', 'replay', 'explain', 'unload', 'audit'],
    load: async () => (await import('./operations/history.ts')).addHistoryCommands,
  },
  {
    heading: 'Compare with others:',
    commands: ['reconcile'],
    load: async () => (await import('./reconcile.ts')).addReconcile,
  },
  {
    heading: 'Accounts:',
    commands: ['token', 'limit', 'currency'],
    load: async () => (await import('./operations/accounts.ts')).addAccountCommands,
  },
  {
    heading: 'Reports by mail:',
    commands: ['schedule', 'mail'],
    load: async () => (await import('./operations/schedules.ts')).addMailCommands,
  },
  {
    heading: 'Maintain the database:',
    commands: [
      'migrate',
      'status',
      'backup',
      'restore',
      'prune',
      'check',
      'verify',
      'rebuild',
      'close',
      'closes',
      'check-manifest',
    ],
    load: async () => (await import('./store/maintenance.ts')).addMaintenanceCommands,
  },
  {
    heading: 'Cluster:',
    commands: ['place', 'grow'],
    load: async () => (await import('./store/cluster.ts')).addClusterCommands,
  },
];

/**
 * `adtally`; nothing runs before it parses a command line.
 * @param command the only one that is going to be called, so that code of others need not be read; an unknown name reads all
 * @param size of the work of `ingest events`, for tests that interrupt it between two chunks of a small file
 */
export async function createProgram(command = '', size: ChunkSize = {}): Promise<Command> {
  const program = new Command('adtally')
    .description('Ad performance reports from ClickHouse: exact, complete, streamed.')
    .version(describeVersion(runningVersion()), '-V, --version', 'print the version and the commit')
    .exitOverride()
    .configureHelp({ showGlobalOptions: true })
    .addHelpText('after', epilogue);
  const called = groups.filter(({ commands }) => commands.includes(command));
  for (const { heading, load } of called.length > 0 ? called : groups) {
    (await load())(program.commandsGroup(heading), size);
  }
  addExamples(program);
  return program;
}
