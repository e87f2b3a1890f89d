import { killedDuringLoads } from '../../support/crash-suite.ts';

// More rounds, of more events, are in crash.thorough.test.ts.
killedDuringLoads(['loader', 'clickhouse'], 6_000);
