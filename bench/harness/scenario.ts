import { endpoints } from '../../catalog/breakdowns.ts';
import { catalog } from '../../catalog/catalog.ts';
import { type Address, connect } from '../../clickhouse/client.ts';
import { createToken } from '../../src/accounts/tokens.ts';
import { accountOf, lastDays } from '../data/network.ts';
import type { FilledStore } from '../data/store.ts';
import type { GoalValue } from '../report/goals.ts';
import type { HttpRequest } from './http-client.ts';
import type { Samples } from './measure.ts';
import { type ServerProcess, startService } from './processes.ts';
import { type Report, reportRequest } from './requests.ts';

/** The context of a scenario. */
export interface Bench {
  readonly server: Address;
  /** Compiled JavaScript of the project. */
  readonly compiled: string;
  /** A folder for files; removed at the end. */
  readonly scratch: string;
  /** A folder for stores that are kept. */
  readonly data?: string;
  readonly events: number;
  readonly seed: number;
  readonly runs: number;
  /** Fewer variants: shows only that the scenario works. */
  readonly quick: boolean;
  /** The size of the files that show the memory of the loader; absent: that of so many events. */
  readonly bytes?: number;
  /** How long callers repeat small requests for one sample. */
  readonly callSeconds: number;
  /** A store with this many events, generated when it is first asked for. */
  store(events: number): Promise<FilledStore>;
  /** Shows what is being measured. */
  progress(what: string): void;
  /** Reports something that cannot run here; the scenario continues without it. */
  skip(why: string): void;
  /** Reports a failure; the scenario continues, and the exit code will be 1. */
  fail(what: string, error: unknown): void;
}

/** One comparison: the same work done by several sides, the first of them adtally. */
export interface Outcome {
  readonly what: string;
  /** Of those a second more is better, of the rest less. */
  readonly unit: 's' | 'ms' | 'MB' | 'µs/event' | 'bytes/event' | 'requests/s' | 'events/s';
  readonly sides: readonly Samples[];
  readonly facts?: Readonly<Record<string, number>>;
  readonly goals?: readonly GoalValue[];
  /** The chart it is shown in. */
  readonly chart?: ChartName;
}

export const charts = {
  peers: 'Most granular report over HTTP, one year of the largest account: seconds',
  ingest: 'Loading a file of events into the same tables: events a second',
} as const;
export type ChartName = keyof typeof charts;

export type Scenario = (bench: Bench) => Promise<Outcome[]>;

/** The report of an endpoint for the last days of the year. */
export function report(path: string, days: number, size: 'large' | 'small' = 'large'): Report {
  const endpoint = endpoints(catalog).find((candidate) => candidate.path === path);
  if (!endpoint) throw new Error(`there is no endpoint ${path}`);
  return { ...endpoint, account: accountOf(endpoint.breakdown.family, size), period: lastDays(days) };
}

/** The most granular report there is: a year of the very large advertiser. */
export const largest = report('/v1/campaigns/breakdowns/device_creative_date', 365);
/** One row. */
export const smallest = report('/v1/campaigns', 1, 'small');

let rangesAsked = 0;

/** The same report for a range that nobody has asked for yet: it ends a day later each time, after the last event. */
export function neverAsked(asked: Report): Report {
  const end = new Date(Date.parse(asked.period.end) + ++rangesAsked * 86_400_000);
  return { ...asked, period: { ...asked.period, end: end.toISOString().slice(0, 10) } };
}

/** A running service on a store, with tokens for the accounts of the network. */
export interface Service extends ServerProcess {
  /** The request of a report, with the token of its account. */
  request(report: Report, encoding?: string): HttpRequest;
}

export async function openService({ compiled }: Bench, address: Address): Promise<Service> {
  const store = connect(address);
  const tokens = new Map<string, string>();
  try {
    for (const family of Object.keys(catalog.families)) {
      for (const size of ['large', 'small'] as const) {
        const account = accountOf(family, size);
        tokens.set(account, await createToken(store, { account, label: 'bench' }));
      }
    }
  } finally {
    await store.close();
  }
  const server = await startService(compiled, address);
  return {
    ...server,
    request: (report, encoding = 'identity') =>
      reportRequest(server.url, report, {
        authorization: `Bearer ${tokens.get(report.account)}`,
        'accept-encoding': encoding,
      }),
  };
}
