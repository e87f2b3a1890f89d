/**
 * Runs commands of adtally one after the other, each as a process of its own would: with the arguments, the environment
 * and the two streams of a process. Tells their ends on both streams, after all that they wrote. See command-runners.ts.
 */
import { extname } from 'node:path';
import { cliFor } from './chunk-options.ts';
import type { CommandLine } from './command-runners.ts';

const programFor = (args: readonly string[]) =>
  new URL(`../../${cliFor(args)}${extname(import.meta.url)}`, import.meta.url);
let runs = 0;

for (const stream of [process.stdout, process.stderr]) stream.setMaxListeners(0);
process.on('message', async ({ args, end }: CommandLine) => {
  process.argv.splice(2, Infinity, ...args);
  await import(`${programFor(args)}?${++runs}`);
  process.stderr.write(end);
  process.stdout.write(`\0${process.exitCode ?? 0}${end}`);
  process.exitCode = undefined;
});
