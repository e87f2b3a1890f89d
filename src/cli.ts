#!/usr/bin/env node
import { Command } from 'commander';
import { addAccountCommands } from './cli/accounts.ts';
import { addClusterCommands } from './cli/cluster.ts';
import { addHistoryCommands } from './cli/history.ts';
import { addIngestCommands } from './cli/ingest/commands.ts';
import { addMaintenanceCommands } from './cli/maintenance.ts';
import { run } from './cli/run.ts';
import { addServeCommands } from './cli/serve.ts';

const program = new Command('adtally')
  .description('Ad performance reports from ClickHouse: exact, complete, streamed.')
  .exitOverride()
  .configureHelp({ showGlobalOptions: true })
  .addHelpText(
    'after',
    '\nExit codes: 0 done, 1 failed, 2 wrong usage, 4 loaded but some rows were rejected.',
  );

addServeCommands(program.commandsGroup('Serve:'));
addIngestCommands(program.commandsGroup('Load:'));
addHistoryCommands(program.commandsGroup('Inspect loads:'));
addAccountCommands(program.commandsGroup('Accounts:'));
addMaintenanceCommands(program.commandsGroup('Maintain the database:'));
addClusterCommands(program.commandsGroup('Cluster:'));

await run(program);
