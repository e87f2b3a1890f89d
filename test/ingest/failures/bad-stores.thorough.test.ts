import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { connect } from '../../../clickhouse/client.ts';
import { embedded } from '../../support/compiled.ts';
import { useFolder } from '../../support/folder.ts';
import { counted, eventsFile, underWay } from '../../support/load-under-way.ts';
import { outputOf, useCommands } from '../../support/process.ts';
import { createMigrated } from '../../support/store.ts';

const commands = useCommands();
const folder = useFolder();

test('a load rides through the end and the restart of the embedded ClickHouse', async () => {
  const dataDir = join(folder, 'data');
  const lease = await (await embedded()).acquireEmbedded(dataDir);
  const address = { ...lease.address, database: 'adtally' };
  await createMigrated(address);
  const store = connect(address);
  try {
    const path = eventsFile(folder, 'restarted', 20_000);
    const load = commands.start(['ingest', 'events', '--chunk-bytes', '100000', path], { DATA_DIR: dataDir });
    await underWay(store);
    process.kill(JSON.parse(readFileSync(join(dataDir, 'clickhouse.json'), 'utf8')).pid, 'SIGKILL');
    await outputOf(load.ended);
    expect(await counted(store, 'restarted')).toBe(20_000);
  } finally {
    await store.close();
    await lease.release();
  }
});
