import { killedDuringLoads } from '../../support/crash-suite.ts';

// Hundreds of rounds of one seed: test/long/crash-rounds.ts.
killedDuringLoads(['loader', 'clickhouse', 'loader', 'loader', 'clickhouse', 'loader']);
