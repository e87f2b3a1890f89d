#!/usr/bin/env node
import { createProgram } from './cli/program.ts';
import { run } from './cli/run.ts';

// Where a log or a message cannot be written, the work goes on, and there is nowhere to say so.
process.stderr.on('error', () => {});
await run(await createProgram(process.argv[2]));
