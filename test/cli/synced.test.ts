import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { allSynced } from '../../src/cli/command/synced.ts';
import { useFolder } from '../support/folder.ts';

const folder = useFolder();

test('what is named in a folder and gone when its turn comes is left out; a folder that is not there is an error', async () => {
  mkdirSync(join(folder, 'table'));
  writeFileSync(join(folder, 'table', 'part'), 'rows');
  // Like a part that a merge removes between the look into the folder and the look at it.
  symlinkSync(join(folder, 'gone'), join(folder, 'table', 'merged'));
  await allSynced(join(folder, 'table'));
  await expect(allSynced(join(folder, 'gone'))).rejects.toThrow('ENOENT');
});
