import type { Hono } from 'hono';
import type { Period } from '../data/network.ts';
import type { FilledStore } from '../data/store.ts';
import type { Bench } from '../harness/scenario.ts';

/** An alternative to adtally: another way to answer the same reports over HTTP. */
export interface Peer {
  readonly name: string;
  /**
   * Loads the data in the form that suits the peer best.
   * @throws {CannotRun} when the machine lacks what it needs
   */
  prepare(bench: Bench, filled: FilledStore): Promise<Prepared>;
  /** Its HTTP service, run in its own process: `POST` to the paths of the contract, with the account in a header. */
  serve(settings: Settings): Promise<Hono>;
}

export type Settings = Readonly<Record<string, string>>;

export interface Prepared {
  /** Passed to its process. */
  readonly settings: Settings;
  /** For example the seconds that loading took. */
  readonly facts?: Readonly<Record<string, number>>;
  release?(): Promise<void>;
}

/** The peer cannot run here; the message says why in one line. */
export class CannotRun extends Error {}

/** The header that names the account. Peers neither authenticate nor limit requests, which favours them. */
export const accountHeader = 'x-account';

export const paths = {
  base: '/v1/campaigns',
  finest: '/v1/campaigns/breakdowns/device_creative_date',
} as const;
export type Size = keyof typeof paths;

export interface PeerRequest {
  readonly size: Size;
  readonly account: string;
  readonly period: Period;
}

/** Adds the routes of the two reports that peers answer, in full but for what describes the columns. */
export function addRoutes(app: Hono, answer: (request: PeerRequest) => Promise<Response>): Hono {
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
  after: (unconfirmedDates: readonly string[]) =>
    `,"column_metadata":[],"unconfirmed_revenue_dates":${JSON.stringify(unconfirmedDates)}}}`,
} as const;
