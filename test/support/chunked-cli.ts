/**
 * `adtally` for tests that cut a small file into several chunks, to interrupt what is done with them: two options more
 * of `ingest events`, which stand anywhere on its command line.
 */
import { createProgram } from '../../src/cli/program.ts';
import { run } from '../../src/cli/run.ts';
import { chunkOptions } from './chunk-options.ts';

function taken(option: string): number | undefined {
  const at = process.argv.indexOf(option);
  return at < 0 ? undefined : Number(process.argv.splice(at, 2)[1]);
}

const chunkBytes = taken(chunkOptions.bytes);
const parallel = taken(chunkOptions.parallel);
await run(createProgram({ ...(chunkBytes && { chunkBytes }), ...(parallel && { parallel }) }));
