import { readFileSync } from 'node:fs';
import { dirname, relative, resolve } from 'node:path';
import { Command } from 'commander';
import { createVitest, type TestSpecification } from 'vitest/node';
import { compileAs } from '../support/compiled.ts';
import { type Mutant, mutantsOf, mutated } from '../support/mutants.ts';

/** What tells whether a change matters, by the beginning of the path that is changed: those first that end soon. */
const suites: Readonly<Record<string, readonly string[]>> = {
  'src/report/': ['report/options-compile.test', 'report/compile.test'],
  'ingest/': [
    ...['exactly-once/chunk-states.test', 'exactly-once/schedules.test'],
    ...['exactly-once/claimed-chunks.test', 'exactly-once/delivered-chunks.test'],
    ...['ledger/batch-calls.test', 'ledger/load-heartbeat.test', 'failures/load-failures.test'],
    ...['exactly-once/forgotten-chunks.test', 'exactly-once/batches.test'],
  ],
};

const command = new Command('mutants')
  .description(
    'changes one place of the code at a time and prints the changes that no test notices; changes no file of the checkout',
  )
  .argument('<files...>', 'what is changed, such as ingest/delivery/*.ts')
  .option('--tests <files...>', 'parts of the names of tests that run behind those that always do', [])
  .option('--every <n>', 'one of so many changes', Number, 1)
  .option('--from <n>', 'the first of them, from 0', Number, 0)
  .option('--line <n>', 'of one line alone', Number)
  .option('--all', 'prints the others, too, and the tests that fail')
  .parse();
const {
  tests,
  every,
  from,
  line,
  all = false,
} = command.opts<{
  tests: string[];
  every: number;
  from: number;
  line?: number;
  all?: true;
}>();

let current: { readonly file: string; readonly text: string } | undefined;
const load = (id: string) => (id === current?.file ? current.text : undefined);
// A thread can be ended while it loops.
const vitest = await createVitest(
  'test',
  {
    ...{ watch: false, bail: 1, update: false, reporters: [{}] },
    pool: 'threads',
    maxWorkers: 1,
    isolate: false,
  },
  { plugins: [{ name: 'mutant', enforce: 'pre', load }] },
);

const fates = ['killed', 'endless', 'survived'] as const;
type Fate = (typeof fates)[number];

/** @param limitMs after which what still runs is ended */
async function fateOf(
  specifications: readonly TestSpecification[],
  limitMs: number,
): Promise<{ readonly fate: Fate; readonly by?: string }> {
  let isEndless = false;
  const limit = setTimeout(() => {
    isEndless = true;
    // The second time ends what does not end by itself.
    for (let n = 0; n < 2; n++) vitest.cancelCurrentRun('keyboard-input').catch(() => {});
  }, limitMs);
  try {
    for (const specification of specifications) {
      const run = await vitest.runTestSpecifications([specification]);
      // Vitest tells of all that have ever run.
      const modules = run.testModules.filter(({ moduleId }) => moduleId === specification.moduleId);
      if (isEndless) return { fate: 'endless' };
      const [test] = modules.flatMap((module) => [...module.children.allTests('failed')]);
      const [error] = [...modules.flatMap((module) => module.errors()), ...run.unhandledErrors];
      if (test || error) return { fate: 'killed', by: test?.fullName ?? `${(error as Error).message}` };
    }
    return { fate: 'survived' };
  } finally {
    clearTimeout(limit);
  }
}

/** The tests that tell of a file, and how long they may take. */
const told = new Map<
  string,
  Promise<{ readonly specifications: TestSpecification[]; readonly limitMs: number }>
>();

async function withoutChange(names: readonly string[]) {
  if (names.length === 0) throw new Error('no test is run for it: name some with --tests');
  const globbed = await Promise.all(names.map((name) => vitest.globTestSpecifications([name])));
  const missing = names.filter((_, n) => globbed[n]?.length === 0);
  if (missing.length > 0) throw new Error(`no test is named ${missing.join(' or ')}`);
  const specifications = globbed.flat();
  const began = performance.now();
  const { fate, by } = await fateOf(specifications, 1_800_000);
  if (fate !== 'survived') throw new Error(`the tests fail without a change: ${by}`);
  // Not as one bundle, which would be written anew for each change.
  compileAs('src/cli.ts', readFileSync('src/cli.ts', 'utf8'));
  return { specifications, limitMs: 30_000 + 3 * (performance.now() - began) };
}

const found: { readonly file: string; readonly fate: Fate }[] = [];
for (const file of command.args) {
  const path = resolve(file);
  const isOf = ([beginning]: readonly [string, unknown]) => relative('.', path).startsWith(beginning);
  const names = [
    ...Object.entries(suites)
      .filter(isOf)
      .flatMap(([, suite]) => suite),
    ...tests,
  ];
  const asked = told.get(names.join()) ?? withoutChange(names);
  told.set(names.join(), asked);
  const { specifications, limitMs } = await asked;

  const source = readFileSync(path, 'utf8');
  const lineOf = ({ start }: Mutant) => source.slice(0, start).split('\n').length;
  for (const [n, mutant] of mutantsOf(source).entries()) {
    if (n % every !== from % every || (line !== undefined && lineOf(mutant) !== line)) continue;
    current = { file: path, text: mutated(source, mutant) };
    vitest.invalidateFile(path);
    compileAs(relative('.', path), current.text);
    const { fate, by } = await fateOf(specifications, limitMs);
    found.push({ file, fate });
    if (fate === 'killed' && !all) continue;
    const shown = (text: string) => text.replace(/\s+/g, ' ').slice(0, 100) || 'nothing';
    const change = `${shown(source.slice(mutant.start, mutant.end))} → ${shown(mutant.text)}`;
    const how = { killed: `fails ${by}`, endless: 'never ends', survived: 'goes unnoticed' }[fate];
    process.stdout.write(
      `${file}:${lineOf(mutant)}: ${change}${all || fate === 'endless' ? `: ${how}` : ''}\n`,
    );
  }
  current = undefined;
  vitest.invalidateFile(path);
  compileAs(relative('.', path), source);
  tell(file, (of) => of === file);
}
for (const folder of new Set(command.args.map(dirname))) tell(folder, (file) => dirname(file) === folder);
await vitest.close();

function tell(name: string, isOf: (file: string) => boolean): void {
  const counts = fates.map((fate) => found.filter((one) => isOf(one.file) && one.fate === fate).length);
  const [killed = 0, endless = 0, survived = 0] = counts;
  const changes = killed + endless + survived;
  const score = ((100 * (changes - survived)) / changes).toFixed(1);
  process.stdout.write(
    `${name}: of ${changes} changes ${killed} fail a test, ${endless} never end, ${survived} go unnoticed: ${score} %\n`,
  );
}
