/**
 * Writes dist/build.json, which `adtally --version` reads: the version of package.json and the commit. The commit is
 * that of the checkout, or ADTALLY_COMMIT where there is no repository, as in the build of the image.
 */
import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';

const root = new URL('../../../', import.meta.url);
const { version } = JSON.parse(readFileSync(new URL('package.json', root), 'utf8'));

function git(...args: string[]): string {
  return execFileSync('git', args, {
    cwd: root,
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'ignore'],
  }).trim();
}

function commitHere(): string | undefined {
  const given = process.env.ADTALLY_COMMIT;
  if (given) return given.slice(0, 12);
  try {
    const changed = git('status', '--porcelain', '--untracked-files=no') !== '';
    return `${git('rev-parse', '--short=12', 'HEAD')}${changed ? ', changed' : ''}`;
  } catch {
    // Not a repository, or no git: the version alone.
    return undefined;
  }
}

writeFileSync(new URL('dist/build.json', root), `${JSON.stringify({ version, commit: commitHere() })}\n`);
