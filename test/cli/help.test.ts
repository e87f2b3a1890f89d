import type { Command } from 'commander';
import { expect, test } from 'vitest';
import { fieldSpecs } from '../../catalog/events.ts';
import packageJson from '../../package.json' with { type: 'json' };
import { commandsOf, examples } from '../../src/cli/help/examples.ts';
import { createProgram } from '../../src/cli/program.ts';
import { useCommands } from '../support/process.ts';

const program = await createProgram();
const commands = useCommands();

/** What `--help` of a command prints. */
function helpOf(command: Command): string {
  let written = '';
  command.configureOutput({
    writeOut: (text) => {
      written += text;
    },
  });
  command.outputHelp();
  return written;
}

test('the help of every command and group has examples, whose commands and options exist', () => {
  const all = [...commandsOf(program)].map(({ command, words }) => ({ command, name: words.join(' ') }));
  expect(Object.keys(examples).toSorted()).toEqual(all.map(({ name }) => name).toSorted());
  for (const { command, name } of all) {
    const lines = examples[name]?.map(([line]) => line) ?? [];
    const help = helpOf(command);
    for (const line of lines) {
      expect(help).toContain(line);
      expect(line).toContain(`adtally ${name}`);
      const used = line.match(/(?<= )--[\w-]+/g) ?? [];
      const called = all.findLast(
        (each) => line.includes(`adtally ${each.name}`) && each.name.startsWith(name),
      );
      const known = called?.command.options.map(({ long }) => long);
      expect(known, line).toEqual(expect.arrayContaining(used));
    }
  }
});

test('a command is found although the code of others is not read', async () => {
  for (const command of program.commands.map((each) => each.name())) {
    const alone = (await createProgram(command)).commands;
    expect(alone.map((each) => each.name())).toContain(command);
    expect(alone.length).toBeLessThan(program.commands.length / 2);
  }
});

test('ingest events --help lists every field of an event with its limits', () => {
  const events = [...commandsOf(program)].find(({ words }) => words.join(' ') === 'ingest events');
  const lines = events ? helpOf(events.command).split('\n') : [];
  for (const [name, { maxChars, range }] of Object.entries(fieldSpecs)) {
    const line = lines.find((each) => each.startsWith(`  ${name} `));
    for (const limit of [maxChars, range?.[1]]) expect(line).toContain(limit?.toLocaleString('en') ?? '');
  }
});

test('--version tells the version of the package', async () => {
  const { code, stdout } = await commands.run(['--version']);
  expect({ code, stdout }).toEqual({
    code: 0,
    stdout: `${packageJson.version} (from a checkout)\n`,
  });
});
