import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { useFolder } from '../../support/folder.ts';
import { openGate } from '../../support/gate.ts';
import { counted, eventsFile, underWay } from '../../support/load-under-way.ts';
import { environmentOf, outputOf, useCommands } from '../../support/process.ts';
import { useStore } from '../../support/store.ts';

const db = useStore();
const commands = useCommands();
const folder = useFolder();

const through = (url: string) => environmentOf({ ...db.address, url });

test('a load says that ClickHouse is gone, waits for it, and completes exactly once it is back', async () => {
  const way = await openGate(db.address.url);
  try {
    const args = ['ingest', 'events', '--chunk-bytes', '100000', eventsFile(folder, 'cut-off', 5_000)];
    const load = commands.start(args, through(way.url));
    await underWay(db.store);
    way.close();
    await load.said(/retrying for two minutes/);
    await way.open();
    await outputOf(load.ended);
    expect(await counted(db.store, 'cut-off')).toBe(5_000);
  } finally {
    way.close();
  }
});

test('a ClickHouse that is not there when a load begins is named', async () => {
  const way = await openGate(db.address.url);
  way.close();
  const { code, stderr } = await commands.run(
    ['ingest', 'events', eventsFile(folder, 'early', 1)],
    through(way.url),
  );
  expect(code).toBe(1);
  expect(stderr).toMatch(/ECONNREFUSED 127\.0\.0\.1:\d+/);
});

test('a DATA_DIR that cannot be written is named', async () => {
  const taken = join(folder, 'taken');
  writeFileSync(taken, 'a file');
  const dataDir = join(taken, 'data');
  const path = eventsFile(folder, 'nowhere', 1);
  const { code, stderr } = await commands.run(['ingest', 'events', path], { DATA_DIR: dataDir });
  expect(code).toBe(1);
  expect(stderr).toContain(`DATA_DIR ${dataDir} cannot be created or written: `);
});
