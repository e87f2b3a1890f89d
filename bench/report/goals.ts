export interface Goal {
  readonly what: string;
  /** Either this or `atLeast`. */
  readonly atMost?: number;
  readonly atLeast?: number;
  readonly unit: string;
  /** What keeps it from being better, as far as it was looked for. */
  readonly limit?: string;
}

/** The goals for 10 million events or more on two cores. */
export const goals = {
  edgeIdentity: {
    what: 'most granular report, against JSONEachRow directly',
    atMost: 0.8,
    unit: '× its time',
    limit:
      'adtally’s statement, asked directly, takes 0.64; the rest is Node.js and the kernel, which pass 99 MB on',
  },
  edgeStatement: {
    what: "the same, against adtally's own statement directly",
    atMost: 1.2,
    unit: '× its time',
    limit: 'Node.js takes 95 ms of CPU to pass 99 MB on; the kernel alone takes 45 of that',
  },
  edgeZstd: {
    what: 'the same, zstd, read by a client that decompresses',
    atMost: 0.9,
    unit: '× its time',
    limit: 'one thread compresses 99 MB in 100 ms; against JSONEachRow with zstd it is 0.9',
  },
  edgeTls: {
    what: 'most granular report, behind nginx with TLS, against without',
    atMost: 1.15,
    unit: '× its time',
    limit: 'a third process passes 99 MB on, on two cores',
  },
  nodeApiTime: {
    what: 'most granular report, against the hand-written Node API',
    atLeast: 4,
    unit: '× as fast',
  },
  nodeApiMemory: {
    what: 'peak memory, against the hand-written Node API',
    atMost: 0.2,
    unit: '× its memory',
  },
  duckdb: {
    what: 'most granular report, against DuckDB on its rollup over HTTP',
    atLeast: 3,
    unit: '× as fast',
  },
  postgres: {
    what: "most granular report, against PostgreSQL's rollup over HTTP",
    atLeast: 6,
    unit: '× as fast',
    limit: 'PostgreSQL writes a row as JSON in 3.4 µs',
  },
  smallOne: {
    what: 'smallest report, first time, one caller, against the same SQL directly',
    atMost: 1.25,
    unit: '× its time',
    limit:
      'after its first report the unconfirmed days of an account are in memory: one statement against two',
  },
  smallMany: {
    what: 'smallest report, first time, 32 callers, against the same SQL directly',
    atLeast: 0.9,
    unit: '× its requests/s',
  },
  smallAgain: {
    what: 'smallest report, asked again, 32 callers, against the same SQL directly',
    atLeast: 20,
    unit: '× its requests/s',
  },
  nodeApiFirst: {
    what: 'smallest report, first time, one caller, against the hand-written Node API',
    atMost: 0.9,
    unit: '× its time',
  },
  postgresAgain: {
    what: 'smallest report, asked again, one caller, against PostgreSQL',
    atMost: 0.8,
    unit: '× its time',
  },
  postgresMany: {
    what: 'smallest report, first time, 32 callers, against PostgreSQL',
    atLeast: 0.3,
    unit: '× its requests/s',
  },
  postgresBase: {
    what: 'base report of 90 days, first time, against PostgreSQL',
    atMost: 2,
    unit: '× its time',
  },
  smallFloor: {
    what: '3 days by device and day, first time, against SELECT 1 over HTTP',
    atMost: 3,
    unit: '× its time',
  },
  keptNginx: {
    what: 'answer from memory, 64 callers, against a file of nginx',
    atLeast: 0.35,
    unit: '× its requests/s',
  },
  keptNode: {
    what: 'answer from memory, 64 callers, against node:http alone',
    atLeast: 0.3,
    unit: '× its requests/s',
  },
  smallYear: {
    what: '365 days of a small account, first time, against 1 day',
    atMost: 1.25,
    unit: '× its time',
    limit: 'twelve months to open instead of one',
  },
  smallBeside: {
    what: 'smallest report, first time, 99th percentile, beside two callers of the largest, against alone',
    atMost: 3,
    unit: '× the time',
    limit: 'large reports step aside where ClickHouse has CAP_SYS_NICE; without it the same was 4.1',
  },
  asOf: {
    what: 'most granular report of a month as of a moment, against that of today',
    atMost: 3,
    unit: '× its time',
  },
  asOfSmall: {
    what: 'smallest report of a month as of a moment, against that of today',
    atMost: 3,
    unit: '× its time',
    limit:
      'five statements, one after the other where one needs what another tells: what changed since, whether it can be told, the report and its days, and what changed meanwhile; and the events of changed days lie beside those of others',
  },
  close: { what: 'close of ten million rows', atMost: 60, unit: 's' },
  rollups: {
    what: 'base report over 90 days, against raw events in ClickHouse',
    atLeast: 50,
    unit: '× as fast',
    limit: 'ClickHouse adds up the events of these days in 160 ms; no report takes less than 5',
  },
  ingestNdjson: {
    what: 'loader, NDJSON, against one plain INSERT',
    atLeast: 1,
    unit: '× as fast',
    limit:
      'storing and grouping the events is two fifths of the CPU of both sides; finding, naming and passing on the records is a sixth of the loader’s. It was 1.33 on another processor, on which the plain INSERT took 244,000 events a second and not 357,000',
  },
  ingestCsv: { what: 'loader, CSV, against one plain INSERT', atLeast: 1.1, unit: '× as fast' },
  ingestParquet: {
    what: 'loader, Parquet, against one plain INSERT',
    atLeast: 1.2,
    unit: '× as fast',
    limit:
      'storing and grouping the events is most of the CPU of both sides, which use 1.1 to 1.5 of two cores',
  },
  loaderCpuNdjson: {
    what: 'CPU of a load, NDJSON, against parsing the file into Null',
    atMost: 3,
    unit: '× its CPU',
    limit: 'naming and judging the records, storing the events, and eight rollups',
  },
  loaderCpuCsv: {
    what: 'CPU of a load, CSV, against parsing the file into Null',
    atMost: 2.5,
    unit: '× its CPU',
  },
  disk: {
    what: 'bytes of an event on disk, with rollups, against Parquet, zstd -19',
    atMost: 1.5,
    unit: '× its bytes',
    limit:
      'events are packed with ZSTD, which takes 19 bytes; LZ4 took 34, and up to a fifth less CPU to store them',
  },
  start: { what: 'start of the service and of ClickHouse, until the first report', atMost: 1.5, unit: 's' },
  ingestBad: { what: 'loader, 5 % bad records, against none', atLeast: 0.8, unit: '× as fast' },
  smallFiles: {
    what: 'loader, 1,000 files of one line',
    atMost: 60,
    unit: 's',
  },
  loaderMemory: {
    what: 'memory of the loader, any format',
    atMost: 300,
    unit: 'MB',
    limit:
      'of packed files and of objects two chunks on their way and a third that is read are held; others of more than 16 MiB are read twice',
  },
  pushLarge: {
    what: 'bodies of 8 MiB sent over HTTP, against the loader',
    atLeast: 0.8,
    unit: '× as fast',
    limit:
      'an insert of 8 MiB takes ClickHouse twice the CPU an event of one of 192 MiB; several bodies that are stored at once are held back first',
  },
  pushSmall: {
    what: '100 clients, each waits for the answer to 100 events',
    atLeast: 20_000,
    unit: 'events/s',
    limit:
      'the fourteen statements of a group follow each other; a third of two cores is idle meanwhile. Within a day 11,000 to 20,700 were measured, on the same kind of machine',
  },
  pushWait: { what: 'the same, 99 % of the answers', atMost: 1_000, unit: 'ms' },
  pushBeside: {
    what: 'smallest report, first time, 99th percentile, while up to 50,000 events a second are sent, against alone',
    atMost: 2,
    unit: '× the time',
  },
  scale: { what: 'ten times the events, same keys', atMost: 1.2, unit: '× the time' },
  memory: { what: 'service memory, eight callers on the largest report', atMost: 150, unit: 'MB' },
  gigabyteMemory: { what: 'service memory, a report of a gigabyte', atMost: 250, unit: 'MB' },
} as const satisfies Record<string, Goal>;

export type GoalName = keyof typeof goals;

/** A measurement that counts for a goal. */
export interface GoalValue {
  readonly goal: GoalName;
  readonly value: number;
}

export interface Verdict extends GoalValue {
  readonly what: string;
  /** `≤ 0.90 × its time` */
  readonly wanted: string;
  readonly met: boolean;
}

/** The verdict on each measured goal; its worst measurement counts. */
export function verdicts(values: readonly GoalValue[]): Verdict[] {
  return (Object.keys(goals) as GoalName[]).flatMap((name) => {
    const { what, unit, atMost, atLeast }: Goal = goals[name];
    const measured = values.filter(({ goal }) => goal === name).map(({ value }) => value);
    if (measured.length === 0) return [];
    const value = atMost === undefined ? Math.min(...measured) : Math.max(...measured);
    const met = atMost === undefined ? value >= (atLeast ?? 0) : value <= atMost;
    const wanted = atMost === undefined ? `≥ ${atLeast} ${unit}` : `≤ ${atMost} ${unit}`;
    return [{ goal: name, value, what, wanted, met }];
  });
}
