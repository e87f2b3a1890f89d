import { expect, test } from 'vitest';
import { ndjson } from '../../support/events.ts';
import { done } from '../../support/loader.ts';
import { sameFilesAtOnce, until, useMeetingLoaders } from '../../support/meeting-loaders.ts';
import { useStore } from '../../support/store.ts';

const loaders = useMeetingLoaders(useStore());
const { file, start, events, counted, chunks } = loaders;

sameFilesAtOnce(loaders, ['the same order', 'opposite orders'], 10);

test.each(['SIGINT', 'SIGTERM'] as const)(
  '%s finishes the chunks in flight, says how to go on, and the same command completes',
  async (signal) => {
    const path = await file('e.ndjson', ndjson(events(20_000)));
    const args = ['ingest', 'events', '--json', '--chunk-bytes', '60000', path];
    const stopped = start(...args);
    await until(async () => expect((await chunks()).loaded).toBeGreaterThan(1));
    const { code, stdout, stderr } = await stopped.kill(signal);
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
    expect(stderr).toMatch(/Rows already loaded are kept; run the same command again to continue/);
    const before = await counted();
    expect(before).toBeGreaterThan(0);
    expect(before).toBeLessThan(20_000);

    expect(await done(start(...args))).toMatchObject({ rows: 20_000 - before, repeated_rows: before });
    expect(await counted()).toBe(20_000);
  },
);
