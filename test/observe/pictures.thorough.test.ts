import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { event, load } from '../support/events.ts';
import { checkout, startProcess } from '../support/process.ts';
import { type Prometheus, rulesFile, startPrometheus } from '../support/prometheus.ts';
import { useService } from '../support/service.ts';
import { useStore } from '../support/store.ts';

/** Queries of the dashboard and the rules, asked of a real Prometheus (Debian: prometheus) that scrapes a real adtally. */
const db = useStore();
beforeAll(async () => {
  await load(db.store, [event({ advertiser_id: 'a', spend: '1' }), event({ campaign_id: '' })]);
});
const service = useService(db, { RATE_LIMIT_REQUESTS: '50', ALERT_UNCONFIRMED_DAYS: '0' });
let prometheus: Prometheus;
beforeAll(async () => {
  prometheus = await startPrometheus(service.url);
});
afterAll(() => prometheus?.stop());

interface Panel {
  readonly title: string;
  readonly targets?: readonly { readonly expr: string }[];
}
const dashboard = JSON.parse(
  readFileSync(join(checkout, 'deploy/grafana/dashboards/adtally.json'), 'utf8'),
) as {
  panels: Panel[];
  annotations: { list: { expr: string }[] };
};
const queries = dashboard.panels.flatMap(({ title, targets = [] }) =>
  targets.map(({ expr }) => ({ title, expr })),
);

const ask = (expr: string) =>
  prometheus.ask(expr.replaceAll('$__rate_interval', '30s').replaceAll('$instance', '.*'));

test('every picture of the dashboard has something to show after a few requests', async () => {
  const body = { start_time: '2026-01-01', end_time: '2026-12-31' };
  let requests = 0;
  const call = async () => {
    requests++;
    await Promise.all([
      service.post('/v1/campaigns', 'a', body).then((answer) => answer.text()),
      service.post('/v1/campaigns', 'nobody', body, { authorization: 'Bearer adt_wrong' }),
    ]);
    const shown = await ask('rate(adtally_requests_limited_total[30s]) > 0');
    return shown.length > 0 && requests > 60;
  };
  await expect.poll(call, { timeout: 90_000, interval: 200 }).toBe(true);
  // What breaks off, Redis, and days with others like them are not there.
  const absent = /adtally_answers_broken_total|adtally_redis_up|adtally_day_ratio|adtally_low_accounts/;
  for (const { title, expr } of queries) {
    const result = await ask(expr);
    if (absent.test(expr)) continue;
    expect(result.length, `${title}: ${expr}`).toBeGreaterThan(0);
    expect(
      result.map(({ value: [, value] }) => value),
      `${title}: ${expr}`,
    ).not.toContain('NaN');
  }
  // When a load ended, and the services to choose from.
  for (const { expr } of dashboard.annotations.list) await ask(expr);
  const services = await ask('adtally_build_info');
  expect(services.map(({ metric }) => metric.instance)).toEqual([
    expect.stringMatching(/^127\.0\.0\.1:\d+$/),
  ]);
});

test('the rules are valid, ask for metrics that are there, and nothing else than a rejected row is raised', async () => {
  const rules = await prometheus.rules();
  expect(rules.length).toBeGreaterThan(10);
  expect(rules.filter(({ health }) => health !== 'ok')).toEqual([]);
  const raised = rules.filter(({ state }) => state !== 'inactive').map(({ name }) => name);
  expect(raised.filter((name) => !/RejectedRowsOpen|DiskFull|GateFull|LoginsRefused/.test(name))).toEqual([]);
  const text = readFileSync(rulesFile, 'utf8');
  const metrics = await (await fetch(`${service.url}/metrics`)).text();
  const named = new Set(text.match(/\badtally_\w+/g));
  const missing = [...named].filter((name) => !metrics.includes(name.replace(/_bucket$/, '')));
  expect(missing).toEqual(['adtally_redis_up']);
});

test('each rule fires when its promise is broken, and not before', async () => {
  const inFolder = join(checkout, 'deploy/prometheus');
  for (const args of [
    ['check', 'rules', join(inFolder, 'alerts.yml')],
    ['test', 'rules', join(inFolder, 'alerts.test.yml')],
  ]) {
    const { code, stdout, stderr } = await startProcess('promtool', args).ended;
    expect(code, stdout + stderr).toBe(0);
  }
});
