import assert from 'node:assert/strict';
import { readFile, rm } from 'node:fs/promises';
import { Agent, request } from 'node:http';
import { join } from 'node:path';
import { type Address, connect } from '../../clickhouse/client.ts';
import { formats } from '../../ingest/formats/formats.ts';
import { createToken } from '../../src/accounts/tokens.ts';
import { writeEventFile } from '../data/files.ts';
import { runLoader } from '../harness/loader.ts';
import { percentile, runInTurn } from '../harness/measure.ts';
import { startServer, storeEnvironment } from '../harness/processes.ts';
import type { Bench, Outcome, Scenario } from '../harness/scenario.ts';
import { Targets } from '../harness/targets.ts';

const bodyBytes = 8 << 20;
const clients = 100;
const eventsOfBody = 100;

/** Events that are sent over HTTP against the same ones in a file, and many clients with small bodies. */
export const push: Scenario = async (bench) => {
  const targets = new Targets(bench.server);
  const file = join(bench.scratch, 'pushed.ndjson');
  try {
    const events = Math.min(bench.events, 2_000_000);
    await writeEventFile(targets.root, file, formats.ndjson, { events, seed: bench.seed });
    return [await largeBodies(bench, targets, file, events), await smallBodies(bench, targets, file)];
  } finally {
    await rm(file, { force: true });
    await targets.close();
  }
};

async function largeBodies(bench: Bench, targets: Targets, file: string, events: number): Promise<Outcome> {
  bench.progress('bodies of 8 MiB');
  const pushed = targets.side('POST /v1/events, 8 MiB', (address) =>
    withReceiver(bench, address, async (send) => {
      const bodies = cutAtLines(await readFile(file), bodyBytes);
      const startedAt = performance.now();
      // As many at a time as the service loads.
      const next = bodies.values();
      const sendRest = async () => {
        for (const body of next) await send(body);
      };
      await Promise.all(Array.from({ length: 8 }, sendRest));
      return events / ((performance.now() - startedAt) / 1000);
    }),
  );
  const loaded = targets.side(
    'adtally ingest',
    async (address) => events / (await runLoader(bench.compiled, address, file)).seconds,
  );
  const sides = await runInTurn([pushed, loaded], bench.runs, async () => {
    assert.deepEqual(await targets.totals(pushed.name), await targets.totals(loaded.name));
  });
  return {
    what: `${events} events, ndjson: sent over HTTP, and loaded from a file`,
    unit: 'events/s',
    sides,
  };
}

async function smallBodies(bench: Bench, targets: Targets, file: string): Promise<Outcome> {
  bench.progress(`${clients} clients`);
  const lines = (await readFile(file, 'utf8')).split('\n');
  const waits: number[] = [];
  let accepted = 0;
  let sent = 0;
  const side = targets.side(`${clients} clients, bodies of ${eventsOfBody} events`, (address) =>
    withReceiver(bench, address, async (send) => {
      [accepted, sent] = [0, 0];
      const startedAt = performance.now();
      // The first answers come from a service that has just begun.
      const until = startedAt + bench.callSeconds * 10_000;
      const client = async () => {
        while (performance.now() < until) {
          // Each is another body: its last record has another device.
          const n = sent++;
          const from = (n * eventsOfBody) % Math.max(1, lines.length - eventsOfBody);
          const own = `${lines[from] ?? ''}`.replace(/"device":"[^"]*"/, `"device":"${n}"`);
          const body = [own, ...lines.slice(from + 1, from + eventsOfBody)].join('\n');
          const sentAt = performance.now();
          const counted = await send(Buffer.from(body));
          accepted += counted;
          waits.push(performance.now() - sentAt);
        }
      };
      await Promise.all(Array.from({ length: clients }, client));
      return accepted / ((performance.now() - startedAt) / 1000);
    }),
  );
  const sides = await runInTurn([side], Math.min(bench.runs, 3), async () =>
    assert.equal((await targets.totals(side.name)).events, accepted),
  );
  return {
    what: `${clients} clients that each wait for the answer to 100 events`,
    unit: 'events/s',
    sides,
    facts: { p50_ms: Math.round(percentile(waits, 0.5)), p99_ms: Math.round(percentile(waits, 0.99)) },
  };
}

/** Lets `work` send bodies to a service of its own on that store; each resolves with the events that now count. */
async function withReceiver(
  { compiled }: Bench,
  address: Address,
  work: (send: (body: Buffer) => Promise<number>) => Promise<number>,
): Promise<number> {
  const store = connect(address);
  const token = await createToken(store, { account: 'bench', label: '', purpose: 'ingest' }).finally(() =>
    store.close(),
  );
  const server = await startServer(compiled, ['src/cli.js', 'receive'], {
    ...storeEnvironment(address),
    RECEIVE_PORT: '0',
    LOG_LEVEL: 'info',
  });
  const agent = new Agent({ keepAlive: true, maxSockets: clients });
  const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/x-ndjson' };
  const send = (body: Buffer) =>
    new Promise<number>((resolve, reject) => {
      const sent = request(`${server.url}/v1/events`, { method: 'POST', agent, headers }, async (answer) => {
        answer.setEncoding('utf8');
        let text = '';
        for await (const piece of answer) text += piece;
        if (answer.statusCode === 200) resolve(JSON.parse(text).accepted);
        else reject(new Error(text));
      });
      sent.once('error', reject);
      sent.end(body);
    });
  try {
    return await work(send);
  } finally {
    agent.destroy();
    await server.stop();
  }
}

function cutAtLines(bytes: Buffer, most: number): Buffer[] {
  const bodies: Buffer[] = [];
  for (let from = 0; from < bytes.length; ) {
    const last = bytes.lastIndexOf(10, from + most - 1);
    const to = last < from ? bytes.length : last + 1;
    bodies.push(bytes.subarray(from, to));
    from = to;
  }
  return bodies;
}
