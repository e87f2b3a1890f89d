import { join } from 'node:path';
import { connect } from '../../clickhouse/client.ts';
import { acquireEmbedded } from '../../clickhouse/embedded/embedded.ts';
import { createToken } from '../../src/accounts/tokens.ts';
import { openFilledStore } from '../data/store.ts';
import { transfer } from '../harness/http-client.ts';
import { median, runInTurn } from '../harness/measure.ts';
import { startServer } from '../harness/processes.ts';
import { reportRequest } from '../harness/requests.ts';
import { type Scenario, smallest } from '../harness/scenario.ts';

/** From the start of `adtally serve`, ClickHouse included, to its first report. */
export const start: Scenario = async (bench) => {
  const { compiled, scratch, data = join(scratch, 'store'), events, seed, runs, progress } = bench;
  // Not that of the session: the folder is served alone.
  const dataDir = `${data}-start`;
  const lease = await acquireEmbedded(dataDir);
  const filled = await openFilledStore({ ...lease.address, database: 'default' }, { events, seed }, (done) =>
    progress(`generated ${done} of ${events} events`),
  );
  const store = connect(filled.address);
  const token = await createToken(store, { account: smallest.account, label: 'bench' });
  await store.close();
  // Waits until ClickHouse has stopped.
  await lease.release();
  progress('starting');
  const env = { DATA_DIR: dataDir, CLICKHOUSE_DATABASE: filled.address.database, PORT: '0' };
  const serve = async () => {
    const startedAt = performance.now();
    const server = await startServer(compiled, ['src/cli.js', 'serve'], env);
    try {
      await transfer(reportRequest(server.url, smallest, { authorization: `Bearer ${token}` }));
      return (performance.now() - startedAt) / 1000;
    } finally {
      await server.stop();
    }
  };
  const sides = await runInTurn([{ name: 'adtally serve', run: serve }], runs);
  return [
    {
      what: `${events / 1e6} million events: from the start to the first report`,
      unit: 's',
      sides,
      goals: [{ goal: 'start', value: median(sides[0]?.samples ?? []) }],
    },
  ];
};
