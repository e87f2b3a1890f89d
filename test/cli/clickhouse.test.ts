import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { useFolder } from '../support/folder.ts';
import { outputOf, startProcess, useCommands } from '../support/process.ts';

const commands = useCommands();
const folder = useFolder();

test('clickhouse prints a curl line that works as it is, and no password', async () => {
  const DATA_DIR = join(folder, "it's data");
  const running = commands.start(['clickhouse'], { DATA_DIR });
  const [, line = ''] = await running.said(/^(curl .*)$/m);
  expect((await commands.run(['migrate'], { DATA_DIR })).code).toBe(0);
  const stdout = await outputOf(startProcess('sh', ['-c', line]).ended);
  expect(stdout.split('\n')).toContain('campaigns_date');
  const { passwords, secret } = JSON.parse(readFileSync(join(DATA_DIR, 'clickhouse.json'), 'utf8'));

  const ended = await running.kill('SIGINT');
  expect(ended.code).toBe(0);
  for (const hidden of [secret, ...Object.values(passwords)])
    expect(ended.stdout + ended.stderr).not.toContain(hidden);
});
