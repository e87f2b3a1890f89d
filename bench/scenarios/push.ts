import assert from 'node:assert/strict';
import { open, readFile, rm } from 'node:fs/promises';
import { Agent, request } from 'node:http';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { type Address, connect } from '../../clickhouse/client.ts';
import { migrate } from '../../clickhouse/migrate/migrate.ts';
import { formats } from '../../ingest/formats/formats.ts';
import { createToken } from '../../src/accounts/tokens.ts';
import { writeEventFile } from '../data/files.ts';
import { dropStore } from '../data/store.ts';
import { callRepeatedly } from '../harness/http-client.ts';
import { runLoader } from '../harness/loader.ts';
import { median, percentile, ratio, runInTurn } from '../harness/measure.ts';
import { startServer, storeEnvironment } from '../harness/processes.ts';
import {
  type Bench,
  neverAsked,
  type Outcome,
  openService,
  type Scenario,
  smallest,
} from '../harness/scenario.ts';
import { Targets } from '../harness/targets.ts';

const bodyBytes = 8 << 20;
const clients = 100;
const eventsOfBody = 100;
/** Events that each of ten servers sends in a second, if it gets its answers in time. */
const eventsOfServer = 5_000;
/** Small bodies are cut from so much of the file. */
const beginningBytes = 128 << 20;

/** Events that are sent over HTTP against the same ones in a file, many clients with small bodies, and reports beside them. */
export const push: Scenario = async (bench) => {
  const targets = new Targets(bench.server);
  const file = join(bench.scratch, 'pushed.ndjson');
  try {
    const events = Math.min(bench.events, 2_000_000);
    await writeEventFile(targets.root, file, formats.ndjson, { events, seed: bench.seed });
    return [
      await largeBodies(bench, targets, file, events),
      await smallBodies(bench, targets, file),
      await reportsBeside(bench, file),
    ];
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
    goals: [{ goal: 'pushLarge', value: ratio(sides[0]?.samples ?? [], sides[1]?.samples ?? []).median }],
  };
}

async function smallBodies(bench: Bench, targets: Targets, file: string): Promise<Outcome> {
  bench.progress(`${clients} clients`);
  const bodies = await bodiesOf(file, eventsOfBody);
  const waits: number[] = [];
  let accepted = 0;
  const side = targets.side(`${clients} clients, bodies of ${eventsOfBody} events`, (address) =>
    withReceiver(bench, address, async (send) => {
      accepted = 0;
      const startedAt = performance.now();
      // The first answers come from a service that has just begun.
      const until = startedAt + bench.callSeconds * 10_000;
      const client = async () => {
        while (performance.now() < until) {
          const body = bodies.next().value;
          const sentAt = performance.now();
          const counted = await send(body);
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
    goals: [
      { goal: 'pushSmall', value: median(sides[0]?.samples ?? []) },
      { goal: 'pushWait', value: percentile(waits, 0.99) },
    ],
  };
}

/** Small reports that nobody has asked for yet, while servers send events, and alone. */
async function reportsBeside(bench: Bench, file: string): Promise<Outcome> {
  bench.progress('small reports beside events that come');
  const address = { ...bench.server, database: 'bench_beside' };
  await dropStore(address);
  await migrate(address);
  await runLoader(bench.compiled, address, file);
  const bodies = await bodiesOf(file, eventsOfServer);
  const service = await openService(bench, address);
  const rates: number[] = [];
  const options = { callers: 1, seconds: bench.callSeconds * 5 };
  const p99 = async () =>
    percentile(await callRepeatedly(() => service.request(neverAsked(smallest)), options), 0.99);
  try {
    const sides = await withReceiver(bench, address, (send) => {
      const beside = async () => {
        const done = new AbortController();
        const startedAt = performance.now();
        let accepted = 0;
        const server = async () => {
          while (!done.signal.aborted) {
            const second = delay(1_000);
            const counted = await send(bodies.next().value);
            accepted += counted;
            await second;
          }
        };
        const sending = Promise.all(Array.from({ length: 10 }, server));
        // It is awaited later.
        sending.catch(() => undefined);
        const measured = await p99().finally(() => done.abort());
        await sending;
        rates.push(accepted / ((performance.now() - startedAt) / 1000));
        return measured;
      };
      return runInTurn(
        [
          { name: 'adtally, while events come', run: beside },
          { name: 'adtally, alone', run: p99 },
        ],
        bench.runs,
      );
    });
    return {
      what: `smallest report, asked for the first time, 99th percentile, while ten servers send up to ${eventsOfServer} events a second each`,
      unit: 'ms',
      sides,
      facts: { events_per_s: Math.round(percentile(rates, 0.5)) },
      goals: [{ goal: 'pushBeside', value: ratio(sides[0]?.samples ?? [], sides[1]?.samples ?? []).median }],
    };
  } finally {
    await service.stop();
    await dropStore(address);
  }
}

/** Bodies without end, each another: its first record has another device. */
async function bodiesOf(file: string, events: number): Promise<Generator<Buffer, never>> {
  const handle = await open(file);
  const { buffer, bytesRead } = await handle
    .read(Buffer.alloc(beginningBytes), 0, beginningBytes, 0)
    .finally(() => handle.close());
  const lines = buffer.subarray(0, bytesRead).toString().split('\n').slice(0, -1);
  const all = function* (): Generator<Buffer, never> {
    for (let n = 0; ; n++) {
      const from = (n * events) % Math.max(1, lines.length - events);
      const own = `${lines[from] ?? ''}`.replace(/"device":"[^"]*"/, `"device":"${n}"`);
      yield Buffer.from([own, ...lines.slice(from + 1, from + events)].join('\n'));
    }
  };
  return all();
}

/** Lets `work` send bodies to a service of its own on that store; each resolves with the events that now count. */
async function withReceiver<Result>(
  { compiled }: Bench,
  address: Address,
  work: (send: (body: Buffer) => Promise<number>) => Promise<Result>,
): Promise<Result> {
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
