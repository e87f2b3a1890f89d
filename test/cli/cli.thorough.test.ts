import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { useFolder } from '../support/folder.ts';
import { useCommands } from '../support/process.ts';

const commands = useCommands();
const folder = useFolder();

test('commands that start at once on a fresh DATA_DIR share it, and leave no process behind', async () => {
  const env = { DATA_DIR: join(folder, 'fresh') };
  const create = (name: string) => commands.run(['token', 'create', name, '--expires', '2099-01-01'], env);
  const created = await Promise.all(['one', 'two', 'three'].map(create));
  expect(created.map(({ code, stderr }) => ({ code, stderr }))).toEqual(
    Array(3).fill({ code: 0, stderr: '' }),
  );
  const listed = await commands.run(['token', 'list', '--json'], env);
  const accounts = JSON.parse(listed.stdout).map((token: { account: string }) => token.account);
  expect(accounts.toSorted()).toEqual(['one', 'three', 'two']);
  expect(existsSync(join(env.DATA_DIR, 'clickhouse.json'))).toBe(false);
});
