import { PassThrough } from 'node:stream';
import { text } from 'node:stream/consumers';
import { expect, test } from 'vitest';
import { writeLoads } from '../../../ingest/history/load-history.ts';
import { ndjson } from '../../support/events.ts';
import { sameFilesAtOnce, stoppedBy, until, useMeetingLoaders } from '../../support/meeting-loaders.ts';
import { useStore } from '../../support/store.ts';

const db = useStore();
const loaders = useMeetingLoaders(db);
const { file, start, events, chunks } = loaders;

sameFilesAtOnce(loaders, ['the same order', 'opposite orders'], 10);
stoppedBy(loaders, ['SIGINT', 'SIGTERM'], 20_000);

test('a killed load is dead in the history once its last sign of life is old', async () => {
  const path = await file('e.ndjson', ndjson(events(30_000)));
  const killed = start('ingest', 'events', path);
  await until(async () => expect((await chunks()).claimed).toBe(1));
  await killed.kill('SIGKILL');
  const history = async () => {
    const out = new PassThrough();
    const [listed] = await Promise.all([
      text(out),
      writeLoads(db.store, out, 'ndjson', 50).then(() => out.end()),
    ]);
    return listed.split('\n').find((line) => line.includes(`:${killed.pid}"`));
  };
  expect(await history()).toContain('"state":"running"');
  await until(async () => expect(await history()).toContain('"state":"dead"'));
});
