import { killedDuringLoads } from '../support/crash-suite.ts';

// More rounds are in crash.thorough.test.ts.
killedDuringLoads({ loader: 1, clickhouse: 1 });
