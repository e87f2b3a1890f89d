import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';

/** Makes a folder for this run in `parent`, and removes those of runs that ended without removing theirs. */
export function makeRunFolder(parent: string): string {
  for (const name of readdirSync(parent)) {
    const [, pid] = /^adtally-test-(\d+)-/.exec(name) ?? [];
    if (pid && !isRunning(Number(pid))) rmSync(join(parent, name), { recursive: true, force: true });
  }
  return mkdtempSync(join(parent, `adtally-test-${process.pid}-`));
}

function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    // It may be another user's.
    return error instanceof Error && 'code' in error && error.code === 'EPERM';
  }
}
