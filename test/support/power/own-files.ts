import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { linksOf } from '../../../src/accounts/links.ts';
import { loadConfig } from '../../../src/config/config.ts';
import { Disk, diskKinds, journals } from './disk.ts';

/** Makes a link, and cuts the power on each kind of disk: the secret behind it is there. @returns what was wrong */
export async function cutsBehindLinks(): Promise<string[]> {
  const wrong: string[] = [];
  for (const kind of diskKinds) {
    for (const journal of journals) {
      const folder = mkdtempSync(join(tmpdir(), 'adtally-power-'));
      const disk = new Disk(folder, kind);
      try {
        const links = linksOf(loadConfig({ DATA_DIR: disk.root }));
        links.make({ id: 'token', hash: 'hash' }, '/v1/export/campaigns.csv', new Date('2027-01-01'));
        await disk.cut(() => 1, journal);
        const file = join(disk.root, 'link-secret');
        const secret = existsSync(file) ? readFileSync(file, 'utf8') : '';
        if (secret.length !== 43) wrong.push(`${kind}, ${journal}: a secret of ${secret.length} characters`);
      } finally {
        await disk.remove();
        rmSync(folder, { recursive: true });
      }
    }
  }
  return wrong;
}
