import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll } from 'vitest';

/** A folder of a test file, which is removed when its tests are done. */
export function useFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'adtally-'));
  afterAll(() => rmSync(folder, { recursive: true, force: true, maxRetries: 20 }));
  return folder;
}
