import type { Hono } from 'hono';
import type { Period } from '../data/network.ts';
import type { Filled } from '../data/store.ts';
import type { Bench } from '../harness/scenario.ts';

/** Something adtally is compared with: another way to answer the same reports over HTTP. */
export interface Peer {
  readonly name: string;
  /**
   * Gives it the data, in its own best shape.
   * @throws {CannotRun} when the machine lacks what it needs
   */
  prepare(bench: Bench, filled: Filled): Promise<Prepared>;
  /** Its HTTP service, in a process of its own: `POST` to the paths of the contract, the account in a header. */
  serve(settings: Settings): Promise<Hono>;
}

export type Settings = Readonly<Record<string, string>>;

export interface Prepared {
  /** What its process is told. */
  readonly settings: Settings;
  /** Seconds that it took to load events into its shape. */
  readonly facts?: Readonly<Record<string, number>>;
  release?(): Promise<void>;
}

/** The peer cannot run here; the message says why in one line. */
export class CannotRun extends Error {}

/** The header that names the account: peers neither authenticate nor limit, which favours them. */
export const accountHeader = 'x-account';

export const paths = {
  base: '/v1/campaigns',
  finest: '/v1/campaigns/breakdowns/device_creative_date',
} as const;
export type Size = keyof typeof paths;

export interface Asked {
  readonly size: Size;
  readonly account: string;
  readonly period: Period;
}

/** Routes of the two reports that peers answer. */
export function routes(app: Hono, answer: (asked: Asked) => Promise<Response>): Hono {
  for (const size of Object.keys(paths) as Size[]) {
    app.post(paths[size], async (c) => {
      const { start_time: start, end_time: end } = await c.req.json();
      return answer({ size, account: c.req.header(accountHeader) ?? '', period: { start, end } });
    });
  }
  return app;
}

/** The envelope of the contract around the text of the rows. */
export const envelope = {
  before: '{"result":{"last_update_time":"2026-01-01 00:00:00 UTC","rows":',
  after: ',"column_metadata":[],"unconfirmed_revenue_dates":[]}}',
} as const;
