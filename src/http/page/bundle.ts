import { existsSync, readFileSync } from 'node:fs';
import type { Bundle } from './build.ts';

/** Where `npm run build` puts it, beside this file. */
export const bundleFile = 'bundle.json';

/** The bundle of an installed build, or made from the sources of a checkout. */
export async function pageBundle(): Promise<Bundle> {
  const built = new URL(bundleFile, import.meta.url);
  if (existsSync(built)) return JSON.parse(readFileSync(built, 'utf8')) as Bundle;
  const { buildBundle } = await import('./build.ts');
  return buildBundle();
}
