import { existsSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import * as z from 'zod';

export interface Version {
  readonly version: string;
  /** Of the build; absent where adtally runs from a checkout. */
  readonly commit?: string;
}

const written = z.object({ version: z.string(), commit: z.string().optional() });
/** Beside the compiled folders, see cli/write-bundles.ts. */
const build = new URL('../../build.json', import.meta.url);
const checkout = new URL('../../package.json', import.meta.url);

/** What runs here: the version, and the commit that it was built from. */
export function runningVersion(): Version {
  const { version, commit } = written.parse(
    JSON.parse(readFileSync(existsSync(build) ? build : checkout, 'utf8')),
  );
  return { version, ...(commit && { commit }) };
}

/** `0.1.0 (4fb1c2a90d3e)` */
export function describeVersion({ version, commit }: Version): string {
  return `${version} (${commit ?? 'from a checkout'})`;
}

/** Where `docs/` and `deploy/` of this version are: in the package, the image or the checkout. */
export function folderHere(): string {
  return fileURLToPath(new URL(existsSync(build) ? '..' : '.', build));
}

/** How a person calls adtally here, for messages that name a command. */
export function commandHere(): string {
  return existsSync(build) ? 'adtally' : 'npm run -s adtally --';
}
