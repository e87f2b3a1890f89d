import { type Store, select } from '../../clickhouse/client.ts';
import { damagedParts } from '../../clickhouse/consistency/damaged-parts.ts';
import { Refreshed } from '../../clickhouse/refreshed.ts';
import { openWork, storeSize, unconfirmedDays } from '../../ingest/history/figures.ts';
import { judgeDay } from '../../ingest/history/low-day.ts';
import { failingFiles, lastEventsAt, longestLoad } from '../../ingest/history/troubled-loads.ts';
import { dueLooks } from '../../ingest/ledger/followed-files.ts';
import type { AlertLimits } from '../config/config.ts';
import { unsentMails } from '../schedules/mails.ts';
import type { Labelled, Metrics } from './metrics.ts';

/** How often statements over all accounts are asked. */
export interface FigureTimes {
  readonly everyMs: number;
  /** What takes longer in a large store is asked less often: no figure that can be read takes more than this part of the time. */
  readonly partOfTime: number;
}

/** Often enough for an alert, too seldom to be felt. */
const usualTimes: FigureTimes = { everyMs: 60_000, partOfTime: 0.01 };

/** The same of a figure that fails: while it is unknown its alerts cannot fire. */
const partOfTimeInVain = 0.1;

/** Where and by which limits figures are read. */
interface Asked {
  readonly store: Store;
  readonly timezone: string;
  readonly now: Date;
  readonly alerts: AlertLimits;
}

/** Metrics with what each is, and how they are read: together, so that they are of one moment. */
interface Figures {
  readonly metrics: readonly (readonly [name: string, help: string, labelNames?: readonly string[]])[];
  /** Their values, in the same order. */
  readonly read: (asked: Asked) => Promise<readonly (number | readonly Labelled[])[]>;
}

const asked =
  (statement: string) =>
  async ({ store }: Asked) =>
    Object.values((await select<Record<string, number>>(store, statement))[0] ?? {});

async function lowDays({ store, now, timezone, alerts }: Asked): Promise<readonly Labelled[][]> {
  const judged = await judgeDay(store, now, { timezone, rule: alerts.lowDay });
  const values = (value: (of: (typeof judged)[number]) => number) =>
    judged.map((of) => ({ labels: { family: of.family, measure: of.measure }, value: value(of) }));
  return [
    values(({ events, usual }) => events / usual).filter(({ value }) => Number.isFinite(value)),
    values(({ low }) => Number(low)),
    values(({ accounts }) => accounts),
    values(({ missing }) => missing),
  ];
}

const ofMeasure = ['family', 'measure'];

const figures: readonly Figures[] = [
  {
    metrics: [
      [
        'adtally_damaged_parts',
        'Parts that ClickHouse found damaged and goes on without: reports that need their rows are refused.',
      ],
    ],
    read: async ({ store }) => [(await damagedParts(store)).length],
  },
  {
    metrics: [['adtally_rejected_rows_open', 'Rejected rows that are neither replayed nor dismissed.']],
    read: asked(openWork.rejectedRows),
  },
  {
    metrics: [
      [
        'adtally_chunks_in_doubt',
        'Chunks of loads that failed or were interrupted: their files are to be loaded again, or given up.',
      ],
    ],
    read: asked(openWork.chunksInDoubt),
  },
  {
    metrics: [
      [
        'adtally_unconfirmed_days',
        'Days with unconfirmed money, each counted once for an account and family.',
      ],
      ['adtally_unconfirmed_oldest_timestamp_seconds', 'The oldest of these days, since 1970.'],
    ],
    read: async ({ store }) => {
      const { figure, oldest_day } = await unconfirmedDays(store);
      return [figure, Date.parse(oldest_day) / 1000];
    },
  },
  {
    metrics: [['adtally_last_events_timestamp_seconds', 'When events were last newly counted, since 1970.']],
    read: async ({ store }) => [(await lastEventsAt(store)) || Number.NaN],
  },
  {
    metrics: [['adtally_files_failing', 'Files whose loads of the last seven days fail.']],
    read: async ({ store, now }) => [(await failingFiles(store, now)).files],
  },
  {
    metrics: [
      [
        'adtally_followed_look_due_timestamp_seconds',
        'When the next look of a follower is due; all that was there at the last one is loaded, or fails.',
        ['places'],
      ],
    ],
    read: async ({ store }) => [
      (await dueLooks(store)).map(({ places, due }) => ({ labels: { places }, value: due })),
    ],
  },
  {
    metrics: [
      [
        'adtally_mail_unsent_timestamp_seconds',
        'When the oldest mail that is still to be sent had to be sent at the latest, since 1970.',
      ],
      [
        'adtally_mails_stuck',
        'Mails of the last two weeks, and the last one of each month, that were refused, were put off for two weeks, or of which nobody knows whether they were sent.',
      ],
    ],
    read: async ({ store, now, timezone }) => {
      const { oldest, stuck } = await unsentMails(store, now, timezone);
      return [oldest, stuck];
    },
  },
  {
    metrics: [['adtally_load_under_way_seconds', 'For how long the longest load has been under way.']],
    read: async ({ store }) => [(await longestLoad(store)).seconds],
  },
  {
    metrics: [
      [
        'adtally_day_ratio',
        'A count on the last complete day, of its median on the same weekdays before.',
        ofMeasure,
      ],
      ['adtally_low_day', 'Whether that is far below.', ofMeasure],
      ['adtally_low_accounts', 'Accounts whose count on that day is far below.', ofMeasure],
      [
        'adtally_low_accounts_missing_ratio',
        'What these accounts lack, of the median of all accounts together.',
        ofMeasure,
      ],
    ],
    read: lowDays,
  },
  {
    metrics: [
      ['adtally_store_bytes', 'What the tables take on the disk of the ClickHouse that is asked.'],
      ['adtally_store_parts', 'Parts of all tables there.'],
      [
        'adtally_store_partition_parts_max',
        'Parts of the partition that has most; ClickHouse slows inserts down from 1,000 on.',
      ],
    ],
    read: asked(storeSize),
  },
  {
    metrics: [
      ['adtally_store_disk_free_bytes', 'Free space on the disk of the ClickHouse that is asked.'],
      ['adtally_store_disk_bytes', 'The size of that disk.'],
    ],
    read: asked(
      "SELECT toFloat64(free_space), toFloat64(total_space) FROM system.disks WHERE name = 'default'",
    ),
  },
  {
    metrics: [['adtally_clickhouse_memory_bytes', 'Memory of the ClickHouse that is asked.']],
    read: asked("SELECT toFloat64(value) FROM system.metrics WHERE metric = 'MemoryTracking'"),
  },
];

export interface StoreFiguresOptions {
  readonly store: Store;
  readonly alerts: AlertLimits;
  readonly now: () => Date;
  readonly onError: (error: unknown) => void;
  readonly times?: FigureTimes | undefined;
}

/** What the store as a whole has, asked once a minute. What ClickHouse does not tell is NaN and never a number. */
export class StoreFigures {
  readonly #options: StoreFiguresOptions;
  readonly #times: FigureTimes;
  readonly #values = new Map<string, readonly Labelled[]>();
  readonly #refreshed: Refreshed<void>;
  /** When a figure is asked again, by `performance.now()`. */
  readonly #due = new Map<Figures, number>();
  #timezone = 'UTC';
  #stopped = false;

  constructor(options: StoreFiguresOptions) {
    this.#options = options;
    this.#times = options.times ?? usualTimes;
    const { everyMs } = this.#times;
    this.#refreshed = new Refreshed(() => this.#readAll(), { everyMs, onError: options.onError });
  }

  /** Asks for the first time; nobody waits for it. @param timezone of the days of the store */
  start(timezone: string): void {
    this.#timezone = timezone;
    void this.#refreshed.start();
  }

  stop(): void {
    this.#stopped = true;
    this.#refreshed.stop();
  }

  addTo(metrics: Metrics): void {
    for (const [name, help, labelNames = []] of figures.flatMap((group) => group.metrics)) {
      metrics.gauges(name, help, labelNames, () => this.#values.get(name) ?? unknown);
    }
    const { noEventsHours, loadHours, unconfirmedDays } = this.#options.alerts;
    const limits = {
      AdtallyNothingLoaded: noEventsHours * 3600,
      AdtallyLoadTakesLong: loadHours * 3600,
      AdtallyUnconfirmedDays: unconfirmedDays * 86_400,
    };
    metrics.gauges(
      'adtally_alert_limit_seconds',
      'From when on an alert is wanted: the variables ALERT_… of the service.',
      ['alert'],
      () => Object.entries(limits).map(([alert, value]) => ({ labels: { alert }, value })),
    );
  }

  async #readAll(): Promise<void> {
    const { store, alerts, now, onError } = this.#options;
    for (const group of figures) {
      if (this.#stopped) return;
      const begunAt = performance.now();
      if (begunAt < (this.#due.get(group) ?? 0)) continue;
      // Each by itself: an older user of ClickHouse may lack the grant for one of them.
      let { partOfTime } = this.#times;
      const values = await group
        .read({ store, alerts, now: now(), timezone: this.#timezone })
        .catch((error: unknown) => {
          onError(error);
          partOfTime = partOfTimeInVain;
          return [];
        });
      this.#due.set(group, begunAt + (performance.now() - begunAt) / partOfTime);
      for (const [n, [name]] of group.metrics.entries()) {
        const value = values[n];
        this.#values.set(
          name,
          typeof value === 'object' ? value : [{ labels: {}, value: value ?? Number.NaN }],
        );
      }
    }
  }
}

const unknown: readonly Labelled[] = [{ labels: {}, value: Number.NaN }];
