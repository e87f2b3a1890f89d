import { writeFile } from 'node:fs/promises';
import { cleanUp } from './harness/cleanup.ts';
import { describeEnvironment } from './harness/machine.ts';
import { Session, showProgress } from './harness/session.ts';
import { parseOptions } from './options.ts';
import { recordResults } from './report/record.ts';
import { aligned, collect, goalTable, type Results, type ScenarioResult, table } from './report/tables.ts';
import { scenarios } from './scenarios/list.ts';

const options = parseOptions(scenarios);
for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.once(signal, () => void cleanUp().finally(() => process.exit(1)));
}

try {
  const session = await Session.open(options);
  const environment = await describeEnvironment(session.server);
  const { events, seed, runs } = options;
  const finished: ScenarioResult[] = [];
  for (const name of options.scenarios) {
    const scenario = scenarios[name];
    if (!scenario) continue;
    const result = await session.run(name, scenario.run);
    finished.push(result);
    printResult(result);
    // After each scenario: the next one may take an hour.
    await write(collect(environment, { events, seed, runs }, finished));
  }
  printGoals(collect(environment, { events, seed, runs }, finished));
} finally {
  await cleanUp();
}

function printResult(result: ScenarioResult): void {
  if (process.stderr.isTTY) showProgress('');
  console.log(`\n${result.scenario}`);
  console.log(aligned(table(result)));
  for (const why of result.missing) console.log(why);
}

function printGoals({ goals, options: { events } }: Results): void {
  if (goals.length === 0) return;
  console.log(`\ngoals, set for 10 million events or more; here ${events / 1e6} million`);
  console.log(aligned(goalTable(goals)));
}

async function write(results: Results): Promise<void> {
  if (options.json !== undefined) await writeFile(options.json, `${JSON.stringify(results, null, 2)}\n`);
  if (options.record) await recordResults(results);
}
