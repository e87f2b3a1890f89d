import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { endpoints } from '../../catalog/breakdowns.ts';
import { catalog } from '../../catalog/catalog.ts';
import { loadConfig } from '../../src/config/config.ts';
import { exportedReports } from '../../src/http/export/paths.ts';
import { operations } from '../../src/operations/operations.ts';
import { pathOf } from '../../src/receive/operations.ts';
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

test('what is told of reports counts every endpoint of reports, and none of adtally receive', () => {
  const told = ['deploy/prometheus/alerts.yml', 'deploy/grafana/dashboards/adtally.json'].map(read).join('');
  const [matcher = '', ...same] = [...told.matchAll(/endpoint=~\\?"([^"\\]+)/g)].map(([, text]) => text);
  expect([...new Set(same)]).toEqual([matcher]);
  const isReport = (path: string) => new RegExp(`^(?:${matcher})$`).test(path);
  const paths = [...endpoints(catalog), ...exportedReports(catalog)].map(({ path }) => path);
  expect(paths.filter((path) => !isReport(path))).toEqual([]);
  const others = ['/v1/links', '/v1/schedule', '/mcp', 'other', ...operations.map(pathOf)];
  expect(['/v1/events', ...others].filter(isReport)).toEqual([]);
  // What no rule counts fails unseen.
  const [, elsewhere] = /alert: AdtallyRequestsFail.*?endpoint!~"([^"]+)"/s.exec(told) ?? [];
  const isElsewhere = (path: string) => !new RegExp(`^(?:${elsewhere})$`).test(path);
  expect(['/v1/events', '/readyz', ...paths, ...others].filter(isElsewhere)).toEqual(others);
  // Probes and scrapes are no reports.
  const leftOut = [...told.matchAll(/endpoint![=~]\\"([^"\\]+)/g)].map(([, text]) => text);
  expect([...new Set(leftOut)]).toEqual(['other|/readyz|/metrics']);
});
