import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { loadConfig } from '../../src/config/config.ts';
import { checkout } from '../support/process.ts';

const read = (path: string) => readFileSync(join(checkout, path), 'utf8');
const page = read('docs/operations.md');

test('who is woken by an alert finds in docs/operations.md what it means and what to do', () => {
  const alerts = [...read('deploy/prometheus/alerts.yml').matchAll(/- alert: (\w+)/g)].map(
    ([, name]) => name,
  );
  expect(alerts.length).toBeGreaterThan(15);
  expect([...page.matchAll(/^\| (Adtally\w+) \| .{40,} \|$/gm)].map(([, name]) => name).sort()).toEqual(
    [...new Set(alerts)].sort(),
  );
});

test('the limits of alerts that are shown as defaults are those that hold', () => {
  const defaults = (text: string, pattern: RegExp) =>
    Object.fromEntries([...text.matchAll(pattern)].map(([, name, value]) => [name, value]));
  const shown = defaults(page, /^\| `(ALERT_\w+)` \| (\d+) \|/gm);
  expect(Object.keys(shown)).toHaveLength(6);
  expect(loadConfig(shown).alerts).toEqual(loadConfig({}).alerts);
  expect(defaults(read('.env.example'), /^# (ALERT_\w+)=(\d+)$/gm)).toEqual(shown);
  expect(defaults(read('deploy/helm/values.yaml'), /(ALERT_\w+): (\d+)/g)).toEqual(shown);
});
