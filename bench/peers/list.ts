import { duckdbEvents, duckdbRollup } from './duckdb.ts';
import { hypequery } from './hypequery.ts';
import { nodeApi } from './node-api.ts';
import type { Peer } from './peer.ts';
import { postgresql } from './postgresql.ts';

export const peers: Readonly<Record<string, Peer>> = {
  nodeApi,
  hypequery,
  duckdbRollup,
  duckdbEvents,
  postgresql,
};
