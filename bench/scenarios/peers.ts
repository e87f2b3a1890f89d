import assert from 'node:assert/strict';
import { callRepeatedly, type Repeated, rateSide, read, transfer } from '../harness/http-client.ts';
import { median, ratio, runInTurn, type Side } from '../harness/measure.ts';
import { type ServerProcess, startServer } from '../harness/processes.ts';
import { type Report, reportRequest } from '../harness/requests.ts';
import { assertSameRows, datesOf, rowsOf } from '../harness/same-rows.ts';
import {
  type Bench,
  largest,
  neverAsked,
  type Outcome,
  openService,
  report,
  type Scenario,
  type Service,
  smallest,
} from '../harness/scenario.ts';
import { peers } from '../peers/list.ts';
import { accountHeader, CannotRun, type Peer, type Prepared } from '../peers/peer.ts';
import type { GoalName, GoalValue } from '../report/goals.ts';

const goalOf: Readonly<Record<string, GoalName>> = {
  nodeApi: 'nodeApiTime',
  duckdbRollup: 'duckdb',
  postgresql: 'postgres',
};
const base = report('/v1/campaigns', 90);

/** adtally against the alternatives: each over HTTP, in its own process, with equal answers. */
export const comparePeers: Scenario = async (bench) => {
  const filled = await bench.store(bench.events);
  const outcomes: Outcome[] = [];
  for (const [key, peer] of Object.entries(peers)) {
    let prepared: Prepared | undefined;
    let theirs: ServerProcess | undefined;
    let ours: Service | undefined;
    try {
      bench.progress(peer.name);
      prepared = await peer.prepare(bench, filled);
      theirs = await startServer(
        bench.compiled,
        ['bench/peers/serve.js', key, JSON.stringify(prepared.settings)],
        {},
      );
      ours = await openService(bench, filled.address);
      outcomes.push(...(await compare(bench, key, peer, ours, theirs, prepared)));
    } catch (error) {
      if (error instanceof CannotRun) bench.skip(`${peer.name}: ${error.message}`);
      else bench.fail(peer.name, error);
    } finally {
      await ours?.stop();
      await theirs?.stop();
      await prepared?.release?.();
    }
  }
  return outcomes;
};

async function compare(
  bench: Bench,
  key: string,
  { name }: Peer,
  ours: Service,
  theirs: ServerProcess,
  { facts = {} }: Prepared,
): Promise<Outcome[]> {
  const askPeer = (asked: Report) => reportRequest(theirs.url, asked, { [accountHeader]: asked.account });
  for (const asked of [smallest, base, largest]) {
    const [answer, other] = [await read(ours.request(asked)), await read(askPeer(asked))];
    assertSameRows(rowsOf(answer), rowsOf(other), `${name}, ${asked.path}`);
    assert.deepEqual(datesOf(other), datesOf(answer), `${name}, ${asked.path}: unconfirmed days`);
  }
  const transferSide = (asked: () => Report): Side[] => [
    { name: 'adtally', run: async () => (await transfer(ours.request(asked()))).seconds },
    { name, run: async () => (await transfer(askPeer(asked()))).seconds },
  ];
  bench.progress(`${name}: largest report`);
  const large = await runInTurn(
    transferSide(() => largest),
    bench.runs,
  );
  const memory = { ours: ours.peakMemoryMb(), theirs: theirs.peakMemoryMb() };
  bench.progress(`${name}: base and smallest report`);
  const middle = await runInTurn(
    transferSide(() => neverAsked(base)),
    bench.runs,
  );
  const latency = (side: string, asked: Repeated): Side => ({
    name: side,
    run: async () => median(await callRepeatedly(asked, { callers: 1, seconds: bench.callSeconds / 2 })),
  });
  const small = await runInTurn(
    [
      latency('adtally, first', () => ours.request(neverAsked(smallest))),
      latency('adtally, again', ours.request(smallest)),
      latency(name, () => askPeer(neverAsked(smallest))),
    ],
    bench.runs,
  );
  const [first, again, peer] = small.map(({ samples }) => samples);
  const smallGoals: GoalValue[] = [
    ...(key === 'nodeApi'
      ? [{ goal: 'nodeApiFirst', value: ratio(first ?? [], peer ?? []).median } as const]
      : []),
    ...(key === 'postgresql'
      ? [{ goal: 'postgresAgain', value: ratio(again ?? [], peer ?? []).median } as const]
      : []),
  ];
  const many: Outcome[] = [];
  for (const callers of bench.quick ? [8] : [8, 32, 256]) {
    bench.progress(`${name}: smallest report, ${callers} callers`);
    const options = { callers, seconds: bench.callSeconds / 2 };
    const sides = await runInTurn(
      [
        rateSide('adtally, first', () => ours.request(neverAsked(smallest)), options),
        rateSide('adtally, again', ours.request(smallest), options),
        rateSide(name, () => askPeer(neverAsked(smallest)), options),
      ],
      bench.runs,
    );
    const [first, , peer] = sides.map(({ samples }) => samples);
    const value = ratio(first ?? [], peer ?? []).median;
    many.push({
      what: `${name}: smallest report, ${callers} callers`,
      unit: 'requests/s',
      sides,
      ...(key === 'postgresql' && callers === 32 && { goals: [{ goal: 'postgresMany', value }] }),
    });
  }
  const faster = ratio(large[1]?.samples ?? [], large[0]?.samples ?? []).median;
  const slower = ratio(middle[0]?.samples ?? [], middle[1]?.samples ?? []).median;
  const goal = goalOf[key];
  return [
    {
      what: `${name}: largest report`,
      unit: 's',
      sides: large,
      facts,
      chart: 'peers',
      ...(goal && { goals: [{ goal, value: faster }] }),
    },
    {
      what: `${name}: base report, 90 days, first`,
      unit: 's',
      sides: middle,
      ...(key === 'postgresql' && { goals: [{ goal: 'postgresBase', value: slower }] }),
    },
    { what: `${name}: smallest report`, unit: 'ms', sides: small, goals: smallGoals },
    ...many,
    {
      what: `${name}: peak memory, one caller of the largest report`,
      unit: 'MB',
      sides: [
        { name: 'adtally', samples: [memory.ours] },
        { name, samples: [memory.theirs] },
      ],
      ...(key === 'nodeApi' && {
        goals: [{ goal: 'nodeApiMemory' as const, value: memory.ours / memory.theirs }],
      }),
    },
  ];
}
