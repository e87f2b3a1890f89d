import type { Command } from 'commander';
import { expect, test } from 'vitest';
import packageJson from '../../package.json' with { type: 'json' };
import { commandsOf, examples } from '../../src/cli/help/examples.ts';
import { createProgram } from '../../src/cli/program.ts';
import { useCommands } from '../support/process.ts';

const program = createProgram();
const leaves = [...commandsOf(program)].filter(({ command }) => command.commands.length === 0);
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

test('the help of every command has examples, whose commands and options exist', () => {
  const named = leaves.map(({ words }) => words.join(' '));
  expect(Object.keys(examples).toSorted()).toEqual(named.toSorted());
  for (const { command, words } of leaves) {
    const lines = examples[words.join(' ')]?.map(([line]) => line) ?? [];
    const help = helpOf(command);
    for (const line of lines) {
      expect(help).toContain(line);
      expect(line).toContain(`adtally ${words.join(' ')}`);
      const used = line.match(/(?<= )--[\w-]+/g) ?? [];
      const known = command.options.map(({ long }) => long);
      expect(known, line).toEqual(expect.arrayContaining(used));
    }
  }
});

test('--version tells the version of the package', async () => {
  const { code, stdout } = await commands.run(['--version']);
  expect({ code, stdout }).toEqual({
    code: 0,
    stdout: `${packageJson.version} (from a checkout)\n`,
  });
});
