import { execFileSync } from 'node:child_process';

/** Whether a Debian program is there, or can be installed: as root, with apt. @param packageName which has it */
export function hasProgram(name: string, packageName = name): boolean {
  if (succeeds(name, ['--version'])) return true;
  if (process.getuid?.() !== 0 || !succeeds('apt-get', ['--version'])) return false;
  return (
    succeeds('apt-get', ['update', '-qq']) &&
    succeeds('apt-get', ['install', '-y', '-qq', '--no-install-recommends', packageName])
  );
}

function succeeds(command: string, args: string[]): boolean {
  try {
    execFileSync(command, args, { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
}
