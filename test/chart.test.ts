import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { parse } from 'yaml';
import { maxFileBytes } from '../src/reconcile/limits.ts';
import { checkout } from './support/process.ts';

const chart = join(checkout, 'deploy/helm');
const read = (file: string) => readFileSync(join(chart, file), 'utf8');
const values = parse(read('values.yaml'));
const templates = readdirSync(join(chart, 'templates')).map(
  (name) => [name, read(`templates/${name}`)] as const,
);

test('the ingress lets a file to compare through', () => {
  const size = values.ingress.annotations['nginx.ingress.kubernetes.io/proxy-body-size'];
  expect(size).toMatch(/^\d+m$/);
  expect(Number.parseInt(size, 10) << 20).toBeGreaterThan(maxFileBytes);
});

test('every pod runs on the nodes that values.yaml names', () => {
  const pods = templates.filter(([, text]) => /^ *containers:$/m.test(text));
  expect(pods.map(([name]) => name)).toEqual(
    expect.arrayContaining(['deployment.yaml', 'migrate.yaml', 'loads.yaml', 'receive.yaml']),
  );
  for (const [name, text] of pods)
    expect(text, name).toMatch(/^ *spec:\n(.*\n)?.*include "adtally\.scheduling"/m);
});

test('Prometheus reaches receive, and callers of reports are not those who send events', () => {
  const [, service = ''] = /^kind: Service\n(.*)/ms.exec(read('templates/receive.yaml')) ?? [];
  expect(service.split('\nspec:')[0]).toContain('app.kubernetes.io/component: receive');
  const objects = read('templates/network.yaml').split('\n---\n');
  expect(objects.find((text) => text.includes('kind: ServiceMonitor'))).toMatch(
    /operator: In, values: \[admin, receive\].*port: admin, path: \/metrics.*port: http, path: \/metrics/s,
  );
  const policyOf = (component: string) =>
    objects.find(
      (text) => text.includes('kind: NetworkPolicy') && text.includes(`component: ${component}\n`),
    );
  expect(policyOf('service')).toMatch(
    // A rule that lets in an empty list lets in everybody.
    /port: http.*networkPolicy\.callers.*with \.Values\.networkPolicy\.monitoring.*port: admin.*from:\s*\{\{- toYaml \./s,
  );
  expect(policyOf('receive')).toMatch(
    /port: http.*receive\.callers.*\(default list \$\.Values\.networkPolicy\.monitoring\)/s,
  );
  expect(policyOf('receive')).not.toContain('networkPolicy.callers');
  expect(values.receive.callers).toEqual([]);
});

test('a setting that is a number is written in digits, wherever settings are', () => {
  expect(read('templates/_helpers.tpl')).toContain(
    '(toJson $value) $value (kindIs "float64" $value) | quote',
  );
  for (const [name, text] of templates) {
    if (!/settings\b/i.test(text) || name === '_helpers.tpl' || name === 'network.yaml') continue;
    const used = text.split('\n').filter((line) => /\.settings\b/.test(line));
    expect(used, name).not.toEqual([]);
    for (const line of used) expect(line, name).toMatch(/include "adtally\.settings" /);
  }
});

test('receive is given two secrets of the service, and not those that it does not use', () => {
  const receive = read('templates/receive.yaml');
  expect(receive).not.toContain('envFrom');
  const keys = [...receive.matchAll(/existingSecret|key: (\w+), optional: true/g)].flatMap(
    ([, key]) => key ?? [],
  );
  expect(keys).toEqual(['LINK_SECRET', 'SIGNING_KEY']);
});
