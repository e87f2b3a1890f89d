import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { parse } from 'yaml';
import { maxFileBytes } from '../src/reconcile/limits.ts';
import { checkout } from './support/process.ts';

const chart = join(checkout, 'deploy/helm');
const read = (file: string) => readFileSync(join(chart, file), 'utf8');
const values = parse(read('values.yaml'));

test('the ingress lets a file to compare through', () => {
  const size = values.ingress.annotations['nginx.ingress.kubernetes.io/proxy-body-size'];
  expect(size).toMatch(/^\d+m$/);
  expect(Number.parseInt(size, 10) << 20).toBeGreaterThan(maxFileBytes);
});
