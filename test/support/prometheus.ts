import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'vitest';
import { checkout, outputOf, startProcess } from './process.ts';

export const rulesFile = join(checkout, 'deploy/prometheus/alerts.yml');

export interface Rule {
  readonly name: string;
  readonly health: string;
  readonly state: 'inactive' | 'pending' | 'firing';
  readonly labels: Readonly<Record<string, string>>;
}

export interface Prometheus {
  /** The result of a query that must succeed. */
  ask(query: string): Promise<{ metric: Record<string, string>; value: [number, string] }[]>;
  rules(): Promise<readonly Rule[]>;
  stop(): Promise<void>;
}

interface PrometheusOptions {
  /** Absent: those of deploy/. */
  readonly rules?: string;
  /** What it remembers from before, in the format of OpenMetrics. */
  readonly history?: string;
}

/** A real Prometheus (Debian: prometheus) that scrapes this service each second, as the job `adtally`. */
export async function startPrometheus(
  serviceUrl: string,
  { rules = rulesFile, history }: PrometheusOptions = {},
): Promise<Prometheus> {
  const folder = mkdtempSync(join(tmpdir(), 'adtally-prometheus-'));
  const data = join(folder, 'data');
  writeFileSync(
    join(folder, 'prometheus.yml'),
    `global: { scrape_interval: 1s, evaluation_interval: 1s }
rule_files: ['${rules}']
scrape_configs: [{ job_name: adtally, static_configs: [{ targets: ['${new URL(serviceUrl).host}'] }] }]
`,
  );
  if (history) {
    writeFileSync(join(folder, 'history'), history);
    const args = ['tsdb', 'create-blocks-from', 'openmetrics', join(folder, 'history'), data];
    await outputOf(startProcess('promtool', args).ended);
  }
  const prometheus = startProcess('prometheus', [
    `--config.file=${join(folder, 'prometheus.yml')}`,
    `--storage.tsdb.path=${data}`,
    '--web.listen-address=127.0.0.1:0',
  ]);
  const [, address = ''] = await prometheus.said(/msg="Listening on" address=(\S+)/);
  await prometheus.said(/Server is ready to receive web requests/);

  const get = async <T>(path: string): Promise<T> => {
    const answer = await fetch(`http://${address}/api/v1/${path}`);
    const body = (await answer.json()) as { status: string; error?: string; data: T };
    expect(body.status, `${path}: ${body.error}`).toBe('success');
    return body.data;
  };
  return {
    ask: async (query) =>
      (
        await get<{ result: { metric: Record<string, string>; value: [number, string] }[] }>(
          `query?query=${encodeURIComponent(query)}`,
        )
      ).result,
    rules: async () =>
      (await get<{ groups: { rules: Rule[] }[] }>('rules')).groups.flatMap((group) => group.rules),
    stop: async () => {
      await prometheus.kill('SIGTERM');
      rmSync(folder, { recursive: true, maxRetries: 20 });
    },
  };
}
