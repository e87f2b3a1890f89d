/**
 * `adtally` for tests that cut a small file into several chunks, to interrupt what is done with them: an option more of
 * `ingest events`, which stands anywhere on its command line.
 */
import { createProgram } from '../../src/cli/program.ts';
import { run } from '../../src/cli/run.ts';
import { chunkBytes } from './chunk-options.ts';

const at = process.argv.indexOf(chunkBytes);
const size = at < 0 ? {} : { chunkBytes: Number(process.argv.splice(at, 2)[1]) };
await run(await createProgram(process.argv[2], size));
