import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Command } from 'commander';
import { afterAll, expect, test } from 'vitest';
import packageJson from '../../package.json' with { type: 'json' };
import { commandsOf, examples } from '../../src/cli/help/examples.ts';
import { createProgram } from '../../src/cli/program.ts';
import { startProcess, useCommands } from '../support/process.ts';

const program = createProgram();
const leaves = [...commandsOf(program)].filter(({ command }) => command.commands.length === 0);
const commands = useCommands();
const folder = mkdtempSync(join(tmpdir(), 'adtally-help-'));
afterAll(() => rmSync(folder, { recursive: true }));

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

test('bash completes commands, options and their values', async () => {
  const cases: [line: string, expected: string][] = [
    ['adtally inge', 'ingest'],
    ['adtally ingest ev', 'events'],
    ['adtally ingest events --form', '--format'],
    ['adtally ingest events --format pa', 'parquet'],
    ['adtally token create acme --family ', 'campaigns ad_units'],
    ['adtally completion b', 'bash'],
  ];
  const { code, stdout, stderr } = await commands.run(['completion', 'bash']);
  expect(code, stderr).toBe(0);
  const asked = cases.map(([line]) => {
    const words = line.split(' ').map((word) => `'${word}'`);
    return `COMP_WORDS=(${words.join(' ')}); COMP_CWORD=${words.length - 1}; _adtally; echo "\${COMPREPLY[*]}"`;
  });
  const script = join(folder, 'completion.bash');
  writeFileSync(script, [stdout, ...asked].join('\n'));
  const completed = await startProcess('bash', [script]).ended;
  expect(completed.stdout.trim().split('\n')).toEqual(cases.map(([, expected]) => expected));
});
