import { readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, inject, it } from 'vitest';
import * as z from 'zod';
import { startProcess } from '../support/process.ts';

// Peers may have to be installed first; the others need what the tests need.
const groups: readonly (readonly [scenarios: readonly string[], goals: readonly string[]])[] = [
  [['edge', 'mix', 'reports', 'options', 'past'], ['largest report, identity']],
  [['rollups', 'scale', 'shapes', 'cpu', 'disk'], ['ten times the events, same keys']],
  [['ingest', 'push', 'start', 'memory'], ['loader, CSV, against one plain INSERT']],
];

const results = z.object({
  machine: z.object({ cpu: z.string(), cores: z.int(), memory_gb: z.int(), kernel: z.string() }),
  versions: z.object({ node: z.string(), clickhouse: z.string(), hono: z.string() }),
  commit: z.string().min(1),
  options: z.object({ events: z.literal(2000), seed: z.literal(7), runs: z.int() }),
  goals: z.array(
    z.object({ what: z.string(), wanted: z.string(), value: z.number().positive(), met: z.boolean() }),
  ),
  scenarios: z.array(
    z.object({
      scenario: z.string(),
      outcomes: z
        .array(
          z.object({
            what: z.string(),
            unit: z.enum(['s', 'ms', 'MB', 'µs/event', 'bytes/event', 'requests/s', 'events/s']),
            sides: z
              .array(z.object({ name: z.string(), samples: z.array(z.number().positive()).min(1) }))
              .min(1),
          }),
        )
        .min(1),
    }),
  ),
});

it.each(groups)('%j run to their end and write what they measured', async (scenarios, goals) => {
  const file = join(tmpdir(), `adtally-bench-${process.pid}.json`);
  const args = [...scenarios, '--quick', '--events', '2000', '--seed', '7', '--json', file];
  const { url: CLICKHOUSE_URL, user: CLICKHOUSE_USER, password: CLICKHOUSE_PASSWORD } = inject('clickhouse');
  const env = { CLICKHOUSE_URL, CLICKHOUSE_USER, CLICKHOUSE_PASSWORD };
  const bench = startProcess(process.execPath, ['--import', 'tsx', 'bench/main.ts', ...args], env);
  try {
    const { code, stdout, stderr } = await bench.ended;
    expect(code, `${stderr}\n${stdout}`).toBe(0);
    const written = results.parse(JSON.parse(await readFile(file, 'utf8')));
    expect(written.scenarios.map(({ scenario }) => scenario)).toEqual(scenarios);
    for (const { what, wanted } of written.goals)
      expect(stdout).toMatch(new RegExp(`^${what} +${wanted}`, 'm'));
    for (const goal of goals) expect(stdout).toContain(goal);
  } finally {
    await rm(file, { force: true });
  }
});
