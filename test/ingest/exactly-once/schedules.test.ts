import fc from 'fast-check';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { testRounds } from '../../support/random.ts';
import type { FaultKind } from '../../support/simulated/connection.ts';
import { crashesAtEveryStep } from '../../support/simulated/every-step.ts';
import { type Loader, runSchedule, type Schedule } from '../../support/simulated/rounds.ts';
import { schedules } from '../../support/simulated/schedules.ts';
import type { Program } from '../../support/simulated/server.ts';
import { simulateTime } from '../../support/simulated/time.ts';

let undo = () => {};
beforeAll(() => {
  undo = simulateTime();
});
afterAll(() => undo());

type At = readonly [at: number, kind: FaultKind, ms: number];
const loader = (
  startsAt: number,
  sends: Loader['sends'],
  faults: readonly At[] = [],
  more: Partial<Loader> = {},
): Loader => ({
  ...{ startsAt, sends, isHere: false, runs: 1 },
  faults: faults.map(([at, kind, ms]) => ({ at, kind, ms })),
  ...more,
});

test.each<[what: string, Schedule]>([
  [
    'a load that was silent takes nothing back that another has loaded meanwhile, and a restart of the server',
    {
      ...{ seed: 0, wayMs: 1 },
      loaders: [
        loader(0, 'alone', [[9, 'paused behind it', 15_233]]),
        loader(1, 'alone', [[15, 'engine dies before it', 303]]),
      ],
    },
  ],
  [
    'all chunks of a load that takes a new turn go behind the loads that went ahead of it',
    {
      ...{ seed: 0, wayMs: 1, growsAt: 0 },
      loaders: [loader(0, 'alone'), loader(0, 'together', [[16, 'paused behind it', 9_968]])],
    },
  ],
  [
    'a load that wakes up stores nothing that another has taken over',
    {
      ...{ seed: 0, wayMs: 10, growsAt: 0, forgetsAt: 82 },
      loaders: [
        loader(0, 'counted', [[22, 'paused behind it', 27_630]]),
        loader(25_084, 'together', [
          [26, 'lost', 0],
          [31, 'lost', 0],
          [57, 'engine dies while it works', 1_260],
        ]),
      ],
    },
  ],
  [
    'a load that slept while it took a chunk back deletes nothing that another has sent since',
    {
      ...{ seed: 0, wayMs: 1, growsAt: 0 },
      loaders: [
        loader(0, 'alone'),
        loader(6, 'alone', [
          [2, 'engine dies behind it', 1_756],
          [21, 'paused behind it', 16_277],
        ]),
        loader(12_171, 'alone', [[31, 'engine dies behind it', 2_411]]),
      ],
    },
  ],
  [
    'a load that slept while it compared rollups calls nothing loaded that another has taken over',
    {
      ...{ seed: 745_348_372, wayMs: 1 },
      loaders: [
        loader(1_122, 'alone', [[28, 'lost', 0]]),
        loader(0, 'counted', [
          [12, 'engine dies before it', 1],
          [51, 'paused behind it', 14_996],
        ]),
      ],
    },
  ],
  [
    'a load that slept before it repeats an insert stores nothing that another has taken over',
    {
      ...{ seed: 1_195_004_020, wayMs: 1, forgetsAt: 8 },
      loaders: [
        loader(0, 'counted', [[17, 'paused behind it', 15_000]]),
        loader(9, 'alone'),
        loader(12, 'alone', [
          [0, 'engine dies while it works', 0],
          [1, 'late', 7_529],
        ]),
      ],
    },
  ],
  [
    'a load that slept while it noted that the past of a chunk is gone deletes nothing that another has sent since',
    {
      ...{ seed: 1_264_753_265, wayMs: 200 },
      loaders: [
        loader(
          22_710,
          'alone',
          [
            [13, 'engine dies while it works', 61],
            [14, 'killed behind it', 0],
            [31, 'engine dies while it works', 3_269],
          ],
          { isHere: true, runs: 2 },
        ),
        loader(0, 'alone', [[4, 'killed before it', 0]]),
        loader(29_510, 'alone'),
        loader(28_751, 'alone', [[34, 'paused behind it', 24_000]]),
      ],
    },
  ],
  [
    'two chunks of a batch that are sent again at once take nothing from each other',
    {
      ...{ seed: 2_146_435_069, wayMs: 10, growsAt: 0 },
      loaders: [loader(0, 'together', [[27, 'killed before it', 0]], { isHere: true })],
    },
  ],
])('found by simulated schedules: %s', async (_, schedule) => {
  expect((await runSchedule(schedule)).wrong).toEqual([]);
});

test.each([
  [1_452_327_142, 18, 'engine dies behind it', 1_610, 32, 11_749],
  [1_220_206_381, 24, 'engine dies while it works', 1_607, 28, 10_516],
  [917_795_761, 23, 'engine dies before it', 954, 53, 5_299],
] as const)(
  'files of a command, some of them silent and one in doubt, do not wait for each other for ever (%d)',
  async (seed, diesAt, kind, ms, sleepsAt, sleepsMs) => {
    const faults: At[] = [
      [diesAt, kind, ms],
      [sleepsAt, 'paused behind it', sleepsMs],
    ];
    const folder = loader(0, 'together, apart', faults);
    const { ends, wrong } = await runSchedule({ seed, wayMs: 200, loaders: [folder] });
    expect({ ends, wrong }).toEqual({ ends: ['loaded'], wrong: [] });
  },
);

test.each(['alone', 'together', 'counted', 'together, apart', 'in turn, apart'] as const)(
  'a load rides out an engine that is away for longer than it may be silent, whenever that is (sent %s)',
  async (sends) => {
    for (let at = 0; at < 40; at++) {
      const loaders = [loader(0, sends, [[at, 'engine dies before it', 15_000]])];
      const { ends, wrong } = await runSchedule({ seed: at, wayMs: 10, loaders });
      expect({ at, ends, wrong }).toEqual({ at, ends: ['loaded'], wrong: [] });
    }
  },
);

test('a load that slept before it mended, and then loses its connection, ends', async () => {
  const silent = loader(0, 'counted', [
    [12, 'engine dies before it', 1],
    [44, 'paused behind it', 9_984],
    [63, 'lost', 0],
  ]);
  const { ends, wrong } = await runSchedule({ seed: 0, wayMs: 1, loaders: [silent] });
  expect(ends).toEqual([expect.stringContaining('Run the same command again')]);
  expect(wrong).toEqual([]);
});

test.each(['alone', 'together', 'counted'] as const)(
  'a load that ClickHouse refuses a statement, whichever, fails of that and takes no other load of its program with it (sent %s)',
  async (sends) => {
    const unhandled: unknown[] = [];
    const note = (error: unknown) => void unhandled.push(error);
    process.on('unhandledRejection', note);
    onTestFinished(() => void process.off('unhandledRejection', note));
    for (let at = 0; at < 35; at++) {
      const loaders = [loader(0, sends, [[at, 'refused', 0]])];
      const { wrong } = await runSchedule({ seed: 0, wayMs: 1, loaders });
      expect({ at, unhandled, wrong }).toEqual({ at, unhandled: [], wrong: [] });
    }
  },
);

test.each([
  ['the insert is to be repeated late', 21, 27],
  ['the load is told late what the engine is', 19, 23],
])(
  'an interrupted insert is not repeated when the engine may have forgotten what it has of it, which reports would have twice: %s',
  async (_, insert, late) => {
    const counted = loader(0, 'counted', [
      [insert, 'answer lost', 0],
      [late, 'late', 30_000],
    ]);
    const steps: string[] = [];
    const round = { seed: 0, wayMs: 1, forgetsAt: 250, loaders: [counted] };
    const { wrong } = await runSchedule(round, ({ query }, answer) => {
      if (query.startsWith('INSERT INTO incoming (')) steps.push('stored');
      if (JSON.stringify(answer) === '[{"forgotten":1}]') steps.push('forgotten');
    });
    expect(wrong).toEqual([]);
    expect(steps.slice(0, 3)).toEqual(['stored', 'stored', 'forgotten']);
  },
);

test('what the engine has forgotten since a chunk was sent first is not relied on, whoever has claimed the chunk since', async () => {
  // Behind the insert, and behind the claim on what the first has sent.
  const sent = loader(0, 'alone', [[16, 'killed behind it', 0]], { isHere: true });
  const claims = loader(25_000, 'alone', [[10, 'killed behind it', 0]], { isHere: true });
  const round = { seed: 0, wayMs: 1, forgetsAt: 1_000, loaders: [sent, claims] };
  const { ends, wrong } = await runSchedule(round);
  expect(ends).toEqual(['killed', 'killed']);
  expect(wrong).toEqual([]);
});

/** Runs two loaders, the second from 1 s on, and tells when each of them has stored something, in seconds. */
async function storing(first: Loader) {
  const second = loader(1_000, first.sends);
  const seconds = new Map<Program, number[]>();
  const round = { seed: 0, wayMs: 1, loaders: [first, second] };
  const { ends, wrong } = await runSchedule(round, ({ query }, _, now, program) => {
    const own = seconds.get(program) ?? [];
    seconds.set(program, own);
    if (query.startsWith('INSERT INTO incoming (')) own.push(Math.round(now / 1_000));
  });
  expect(wrong).toEqual([]);
  return { ends, seconds: [...seconds.values()].slice(0, 2) };
}

test('a load that takes long is waited for as long as it shows that it runs', async () => {
  const slow = loader(0, 'counted', [[18, 'late', 40_000]]);
  expect(await storing(slow)).toEqual({ ends: ['loaded', 'loaded'], seconds: [[0, 40], []] });
});

test('a load that was silent, and has shown since that it runs, stores nothing that another has taken over', async () => {
  const silent = loader(0, 'counted', [
    [18, 'late', 40_000],
    [20, 'paused behind it', 16_000],
  ]);
  expect(await storing(silent)).toEqual({
    ends: ['loaded', expect.stringContaining('another load has gone on with what it was at')],
    seconds: [[0], [15, 15]],
  });
});

/** The same in each run: `test/long/schedules.ts` looks for what nobody has met yet. */
const seed = Number(process.env.TEST_SEED ?? 1);

test(`each event counts once, whatever happens to loads and engine (seed ${seed})`, async () => {
  const once = async (schedule: Schedule) => {
    expect((await runSchedule(schedule)).wrong).toEqual([]);
  };
  await fc.assert(fc.asyncProperty(schedules, once), { seed, numRuns: testRounds(60) });
});

test('two loaders of two chunks, each killed at any of its statements, also while it mends, leave nothing that the next load does not mend', async () => {
  for (const schedule of crashesAtEveryStep(1_499)) {
    expect((await runSchedule(schedule)).wrong, JSON.stringify(schedule)).toEqual([]);
  }
});
