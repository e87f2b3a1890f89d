/**
 * Writes the programs of a build: the commands, which read their own code alone, the two processes of the embedded
 * engine, and what the page runs; and build.json, which `adtally --version` reads. A command that opens its 300 modules
 * and those of its packages one by one takes 0.4 s of CPU before it begins, and 0.15 s so.
 */
import { execFileSync } from 'node:child_process';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build, type Plugin } from 'esbuild';
import manifest from '../../package.json' with { type: 'json' };
import { buildBundle, bundleFile } from '../http/page/bundle.ts';

const root = fileURLToPath(new URL('../../', import.meta.url));

/** Stay where npm installs them: packages that find files beside them, and those that few installations or commands use. */
const external = [
  '@modelcontextprotocol/server',
  '@opentelemetry/core',
  '@opentelemetry/exporter-trace-otlp-http',
  '@opentelemetry/resources',
  '@opentelemetry/sdk-trace-base',
  'aws4fetch',
  'chdb',
  'cli-progress',
  'esbuild',
  'ffi-rs',
  'ioredis',
  'nodemailer',
  'pino',
];

/** Writes the commands and the processes of ClickHouse below `out`, in the folders of their sources. */
export async function writeBundles(out: string): Promise<void> {
  await bundle(out, 'src', 'cli.ts');
  await bundle(out, 'clickhouse/embedded', 'supervisor.ts', 'engine.ts');
}

/** Modules find files beside them where they would lie if they were compiled one by one. */
const inPlace = (out: string, folder: string): Plugin => ({
  name: 'in-place',
  setup: ({ onLoad }) => {
    onLoad({ filter: /\.ts$/ }, async ({ path }) => {
      const module = join(out, relative(root, path)).replace(/ts$/, 'js');
      const url = `new URL(${JSON.stringify(relative(folder, module))}, import.meta.url).href`;
      const contents = await readFile(path, 'utf8');
      return { contents: contents.replaceAll('import.meta.url', url), loader: 'ts' };
    });
  },
});

async function bundle(out: string, place: string, ...entries: readonly string[]): Promise<void> {
  const folder = join(out, place);
  await build({
    entryPoints: entries.map((entry) => join(root, place, entry)),
    outdir: folder,
    bundle: true,
    splitting: true,
    platform: 'node',
    format: 'esm',
    target: 'node20',
    external,
    plugins: [inPlace(out, folder)],
    // What a stack trace names stays as it is written.
    minifySyntax: true,
    // Packages of CommonJS ask for modules of Node.js.
    banner: {
      js: "import { createRequire as requireFor } from 'node:module'; const require = requireFor(import.meta.url);",
    },
    logLevel: 'warning',
  });
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const dist = join(root, 'dist');
  await writeBundles(dist);
  const page = join(dist, 'src/http/page');
  await mkdir(page, { recursive: true });
  await writeFile(join(page, bundleFile), JSON.stringify(await buildBundle()));
  const { version } = manifest;
  await writeFile(join(dist, 'build.json'), `${JSON.stringify({ version, commit: commitHere() })}\n`);
}

/** That of the checkout, or ADTALLY_COMMIT where there is no repository, as in the build of the image. */
function commitHere(): string | undefined {
  const given = process.env.ADTALLY_COMMIT;
  if (given) return given.slice(0, 12);
  const git = (...args: readonly string[]) =>
    execFileSync('git', args, { cwd: root, encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }).trim();
  try {
    const changed = git('status', '--porcelain', '--untracked-files=no') !== '';
    return `${git('rev-parse', '--short=12', 'HEAD')}${changed ? ', changed' : ''}`;
  } catch {
    // Not a repository, or no git: the version alone.
    return undefined;
  }
}
