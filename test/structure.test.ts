import { execFileSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { posix } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';

const root = fileURLToPath(new URL('..', import.meta.url));

/** From the bottom up: a file imports from its own folder and from those before it. */
const layers = ['catalog', 'clickhouse', 'ingest', 'src', 'clients', 'bench', 'test'];

const folders = layers.flatMap((layer) => [
  layer,
  ...readdirSync(root + layer, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .map(({ parentPath, name }) => posix.join(parentPath, name).slice(root.length)),
]);
const files = folders.flatMap((folder) =>
  readdirSync(root + folder)
    .filter((name) => name.endsWith('.ts'))
    .map((name) => posix.join(folder, name)),
);
const textOf = (file: string) => readFileSync(root + file, 'utf8');

/** What a file imports, types too: paths from the root, and names of packages. */
function importsOf(file: string): string[] {
  const statements = textOf(file).matchAll(
    /^(?:import|export)\b[^;]*?\bfrom '([^']+)'|^import '([^']+)'|\bimport\('([^']+)'\)/gm,
  );
  return [...statements]
    .map(([, from, bare, dynamic]) => from ?? bare ?? dynamic ?? '')
    .map((name) => (name.startsWith('.') ? posix.join(posix.dirname(file), name) : name));
}

const layerOf = (path: string) => layers.indexOf(path.split('/')[0] ?? '');

test('imports go one way: catalog <- clickhouse <- ingest <- src <- clients <- bench <- test', () => {
  const wrong = files.flatMap((file) =>
    importsOf(file)
      .filter((imported) => layerOf(imported) > layerOf(file))
      .map(
        (imported) =>
          `${file} imports ${imported}, which is above it: move what both need down, or hand it in as an argument`,
      ),
  );
  expect(importsOf('src/cli.ts')).toContain('src/cli/run.ts');
  expect(wrong).toEqual([]);
});

test('imports between folders go one way', () => {
  const among = new Map<string, Set<string>>();
  for (const file of files.filter((each) => /^(catalog|clickhouse|ingest|src)\//.test(each))) {
    const folder = posix.dirname(file);
    const others = importsOf(file)
      .filter((imported) => imported.endsWith('.ts'))
      .map((imported) => posix.dirname(imported))
      .filter((other) => other !== folder);
    among.set(folder, new Set([...(among.get(folder) ?? []), ...others]));
  }
  expect(among.size).toBeGreaterThan(60);
  const circles = [...among.keys()].flatMap((folder) => {
    const reached = new Set<string>();
    const reach = (from: string): void => {
      for (const next of among.get(from) ?? []) {
        if (reached.has(next)) continue;
        reached.add(next);
        reach(next);
      }
    };
    reach(folder);
    return reached.has(folder) ? [`${folder} needs itself, by way of others`] : [];
  });
  expect(circles).toEqual([]);
});

test('src/report knows nothing of HTTP', () => {
  const wrong = files
    .filter((file) => file.startsWith('src/report/'))
    .flatMap((file) =>
      importsOf(file)
        .filter((imported) => /^(@?hono\b|src\/http\/)/.test(imported))
        .map((imported) => `${file} imports ${imported}: that belongs in src/http/report`),
    );
  expect(wrong).toEqual([]);
});

test.each(['docs/architecture.md', 'docs/decisions.md', 'CONTRIBUTING.md'])(
  '%s names files that exist',
  (page) => {
    const named = [
      ...textOf(page).matchAll(/\b(?:catalog|clickhouse|ingest|src|bench|test)\/[\w./-]*\w/g),
    ].map(String);
    expect(named.length).toBeGreaterThan(15);
    expect(named.filter((path) => !existsSync(root + path))).toEqual([]);
    const alone = [...textOf(page).matchAll(/`([\w.-]+\.ts)`/g)].map(([, name = '']) => name);
    expect(alone.filter((name) => !files.some((file) => posix.basename(file) === name))).toEqual([]);
  },
);

test('the long tools, which run without Vitest, find all that they import', () => {
  const tools = files.filter((file) => file.startsWith('test/long/') && file !== 'test/long/containers.ts');
  const imported = [...new Set(tools.flatMap(importsOf))].filter((name) => name.endsWith('.ts'));
  expect(imported).toContain('test/support/crash.ts');
  const script = imported.map((name) => `await import('./${name}');`).join('\n');
  const args = ['--import', 'tsx', '--input-type=module', '--eval', `${script}\nprocess.exit(0)`];
  expect(() => execFileSync(process.execPath, args, { cwd: root, stdio: 'pipe' })).not.toThrow();
});
