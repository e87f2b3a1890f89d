import type { Scenario } from '../harness/scenario.ts';
import { disk } from './disk.ts';
import { edge } from './edge.ts';
import { ingest } from './ingest.ts';
import { shapes } from './ingest-shapes.ts';
import { loaderCpu } from './loader-cpu.ts';
import { memory } from './memory.ts';
import { mix } from './mix.ts';
import { options } from './options.ts';
import { past } from './past.ts';
import { comparePeers } from './peers.ts';
import { push } from './push.ts';
import { reports } from './reports.ts';
import { rollups } from './rollups.ts';
import { scale } from './scale.ts';
import { start } from './start.ts';

export const scenarios: Readonly<Record<string, { readonly about: string; readonly run: Scenario }>> = {
  edge: { about: 'the largest and the smallest report against ClickHouse directly', run: edge },
  peers: { about: 'a hand-written Node API, hypequery, DuckDB, PostgreSQL', run: comparePeers },
  mix: { about: 'a thousand accounts, nine of ten reports small, while a loader runs', run: mix },
  reports: { about: 'every endpoint, 1, 30 and 365 days, small and large account', run: reports },
  options: { about: 'top 10, one filter value, totals and months against every row', run: options },
  past: { about: 'a month as of a moment against today, and its close', run: past },
  rollups: { about: 'rollups against raw events', run: rollups },
  scale: { about: 'the same reports at a hundredth, a tenth and all of the events', run: scale },
  ingest: { about: 'the loader against one plain INSERT, with bad lines and other settings', run: ingest },
  shapes: { about: 'the loader on counted events and on a thousand small files', run: shapes },
  push: {
    about: 'events over HTTP against a file, a hundred clients with small bodies, and reports beside',
    run: push,
  },
  cpu: { about: 'of the loader against parsing the same file', run: loaderCpu },
  disk: { about: 'bytes of an event against Parquet', run: disk },
  start: { about: 'of the service on a full store, until its first report', run: start },
  memory: { about: 'of the service and of the loader', run: memory },
};
