import { execFile } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { cp, mkdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import { transformSync } from 'esbuild';
import type * as LocalCluster from '../../bench/cluster/local-cluster.ts';
import type * as Embedded from '../../clickhouse/embedded/embedded.ts';
import { writeBundles } from '../../src/cli/write-bundles.ts';
import { makeRunFolder } from './run-folder.ts';

const checkout = fileURLToPath(new URL('../..', import.meta.url));
/** The setup of a run tells the processes of the run where adtally lies compiled. */
const variable = 'ADTALLY_COMPILED';

const interpreted = `<compile_expressions>0</compile_expressions>
  <compile_aggregate_expressions>0</compile_aggregate_expressions>
  <compile_sort_description>0</compile_sort_description>`;
const interpreting = `<clickhouse><profiles>
  <default>${interpreted}</default>
  <reporter>${interpreted}</reporter>
</profiles></clickhouse>
`;

/**
 * Compiles adtally: the programs as `npm run build` writes them, so that each of the hundreds of processes of a run starts
 * as quickly as an installed one, and every module by itself, for tests that start one. Types are for `npm run check`.
 */
export async function compile(): Promise<{ remove(): Promise<void> }> {
  // Below node_modules, so that packages are found.
  const cache = join(checkout, 'node_modules/.cache');
  await mkdir(cache, { recursive: true });
  const folder = makeRunFolder(cache);
  const remove = () => rm(folder, { recursive: true, force: true });
  try {
    const tsc = join(checkout, 'node_modules/.bin/tsc');
    const project = join(checkout, 'test/support/tsconfig.json');
    await promisify(execFile)(tsc, ['-p', project, '--outDir', folder, '--noCheck']);
    await writeBundles(folder);
    for (const data of [
      'package.json',
      'examples',
      'clickhouse/migrations',
      'clickhouse/config',
      'clickhouse/schema.sql',
    ]) {
      await cp(join(checkout, data), join(folder, data), { recursive: true });
    }
  } catch (error) {
    await remove();
    throw error;
  }
  process.env[variable] = folder;
  return { remove };
}

/**
 * ClickHouse compiles an expression to machine code when it meets it for the third time, and takes 80 ms of CPU for it. The
 * engines that are started from now on do not: the statements of the tests each run on a few rows.
 */
export async function interpretExpressions(): Promise<void> {
  const added = join(compiledFolder('the engine'), 'clickhouse/config/embedded.d');
  await mkdir(added);
  await writeFile(join(added, 'tests.xml'), interpreting);
}

/**
 * Of a module: makes it another one in what is compiled, for the commands that are started from now on.
 * @param path of its source, from the checkout
 * @throws before the setup of a run has compiled it
 */
export function compileAs(path: string, source: string): void {
  const folder = compiledFolder(path);
  const named = source.replaceAll(/((?:from|import) ?\(?'\.[^']*)\.ts'/g, "$1.js'");
  writeFileSync(join(folder, path.replace(/\.ts$/, '.js')), transformSync(named, { loader: 'ts' }).code);
}

function compiledFolder(what: string): string {
  const folder = process.env[variable];
  if (!folder) throw new Error(`${what} cannot be changed before adtally is compiled`);
  return folder;
}

/** The arguments with which Node starts a module of the checkout, named without its ending. */
export function startOf(module: string): string[] {
  const file = fileOf(module);
  return file.endsWith('.ts') ? ['--import', 'tsx', file] : [file];
}

/** Of a module: compiled in a run of the tests, the source where a program of test/long runs by itself. */
export function fileOf(module: string): string {
  const folder = process.env[variable];
  return folder ? join(folder, `${module}.js`) : join(checkout, `${module}.ts`);
}

/** These start engines: compiled code starts them without a loader of TypeScript. */
export const embedded = (): Promise<typeof Embedded> => load('clickhouse/embedded/embedded');
export const localCluster = (): Promise<typeof LocalCluster> => load('bench/cluster/local-cluster');

function load<T>(module: string): Promise<T> {
  return import(pathToFileURL(fileOf(module)).href);
}
