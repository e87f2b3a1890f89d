/** Writes the bundle of the page below the folder that is named, as a build of adtally has it. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { buildBundle } from './build.ts';
import { bundleFile } from './bundle.ts';

const [, , folder = 'dist'] = process.argv;
writeFileSync(join(folder, 'src/http/page', bundleFile), JSON.stringify(await buildBundle()));
