import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { startProcess } from './support/process.ts';

interface Locked {
  readonly version: string;
  readonly resolved?: string;
  readonly integrity?: string;
  readonly optional?: boolean;
  readonly dev?: boolean;
}

const read = (file: string) => readFileSync(new URL(`../${file}`, import.meta.url), 'utf8');
const { packages } = JSON.parse(read('package-lock.json')) as { packages: Record<string, Locked> };
const locked = Object.entries(packages).filter(([path]) => path !== '');

/**
 * Native parts for machines other than Linux on x64 whose hashes the lock file lacks: where it was written, the registry
 * did not have them. The line goes when they are there; docs/security.md says how.
 */
const unverified = [
  /^node_modules\/@chdb\/lib-(darwin-arm64|darwin-x64|linux-arm64-gnu)$/,
  /^node_modules\/@oxc-parser\/binding-/,
];

test('every package of the lock file has a hash, so that npm ci installs what was locked', () => {
  expect(locked.length).toBeGreaterThan(300);
  const without = locked.filter(([, { integrity }]) => !/^sha512-[\w+/]{86}==$/.test(integrity ?? ''));
  const known = without.filter(([path]) => unverified.some((pattern) => pattern.test(path)));
  expect(without.filter((each) => !known.includes(each)).map(([path]) => path)).toEqual([]);
  expect(known.filter(([, { optional }]) => !optional)).toEqual([]);
  // None of them is installed on the machines that releases are tested on.
  const tested = known.filter(([path]) => /linux-x64-gnu/.test(path));
  expect(tested).toEqual([]);
});

test('every package comes from the registry', () => {
  const elsewhere = locked.filter(
    ([, { resolved }]) => resolved !== undefined && !resolved.startsWith('https://registry.npmjs.org/'),
  );
  expect(elsewhere).toEqual([]);
  const manifest = JSON.parse(read('package.json'));
  const ranges = Object.values({
    ...manifest.dependencies,
    ...manifest.peerDependencies,
    ...manifest.devDependencies,
  });
  expect(ranges.filter((range) => !/^\^?\d/.test(String(range)))).toEqual([]);
});

test('the engine of 550 MB comes with a checkout, and not with the package or the image', () => {
  const { dependencies, optionalDependencies, peerDependencies, peerDependenciesMeta, devDependencies } =
    JSON.parse(read('package.json'));
  for (const name of ['chdb', 'ffi-rs']) {
    expect({ ...dependencies, ...optionalDependencies }).not.toHaveProperty(name);
    // Whoever installs it beside the package gets what the tests run on.
    expect(peerDependencies[name]).toBe(devDependencies[name]);
    expect(peerDependenciesMeta[name]).toEqual({ optional: true });
  }
  const ofEngine = locked.filter(([path]) => /^node_modules\/(@?chdb|ffi-rs|@yuuang)/.test(path));
  expect(ofEngine.length).toBeGreaterThan(5);
  // The image is made with --omit=dev.
  expect(ofEngine.filter(([, { dev }]) => !dev)).toEqual([]);
});

interface Component {
  readonly name: string;
  readonly properties?: readonly { readonly name: string; readonly value: string }[];
  readonly hashes?: readonly unknown[];
}

test('npm run sbom lists every package with its hash, and says which are for development', async () => {
  const { code, stdout } = await startProcess('npm', ['run', '-s', 'sbom']).ended;
  expect(code).toBe(0);
  const { bomFormat, components } = JSON.parse(stdout) as { bomFormat: string; components: Component[] };
  expect(bomFormat).toBe('CycloneDX');
  const isTool = ({ properties = [] }: Component) =>
    properties.some(({ name }) => /:development$/.test(name));
  const installed = components.filter((component) => !isTool(component));
  // With --omit dev, npm 11 leaves out what a tool depends on as well, such as the ClickHouse client.
  const wanted = Object.keys(JSON.parse(read('package.json')).dependencies);
  expect(wanted.filter((name) => !installed.some((component) => component.name === name))).toEqual([]);
  expect(installed.map(({ name }) => name)).not.toContain('vitest');
  expect(installed.filter(({ hashes }) => !hashes?.length).length).toBeLessThanOrEqual(3);
});
