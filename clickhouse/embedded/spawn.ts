import { type ChildProcess, type StdioOptions, spawn } from 'node:child_process';
import { createRequire } from 'node:module';
import { dirname, extname } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';

// The children get neither the service's credentials nor NODE_OPTIONS nor a test runner's variables.
const inheritedVariables = [
  'PATH',
  'HOME',
  'TMPDIR',
  'LANG',
  'LD_LIBRARY_PATH',
  'CHDB_LIBCHDB_PATH',
  'CHDB_LIBCHDB_DIR',
];

/** Exit code of a supervisor whose store is in use by another engine (EX_TEMPFAIL: try again). */
export const storeLockedExitCode = 75;

/**
 * Starts a module of this folder as a separate process. Works from a checkout (through tsx) and from the compiled
 * package, whatever the caller's working directory, flags and environment are.
 */
export function spawnModule(
  name: 'supervisor' | 'engine',
  args: readonly string[],
  { variables, ...options }: { stdio: StdioOptions; detached?: boolean; variables?: Record<string, string> },
): ChildProcess {
  const here = fileURLToPath(import.meta.url);
  const extension = extname(here);
  const module = fileURLToPath(new URL(`./${name}${extension}`, import.meta.url));
  const loader = extension === '.ts' ? ['--import', tsxLoader()] : [];
  return spawn(process.execPath, [...loader, module, ...args], {
    ...options,
    cwd: dirname(here),
    env: {
      ...Object.fromEntries(inheritedVariables.map((variable) => [variable, process.env[variable]])),
      ...variables,
    },
  });
}

function tsxLoader(): string {
  return pathToFileURL(createRequire(import.meta.url).resolve('tsx')).href;
}
