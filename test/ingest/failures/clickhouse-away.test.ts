import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test, vi } from 'vitest';
import { connect, select } from '../../../clickhouse/client.ts';
import { plainReading } from '../../../ingest/event/reading.ts';
import { LocalFile } from '../../../ingest/input/local-file.ts';
import { LoadError, Stopped } from '../../../ingest/ledger/load-error.ts';
import { loadEvents } from '../../../ingest/load/load-events.ts';
import { loadFiles } from '../../../ingest/load/load-files.ts';
import { event, ndjson } from '../../support/events.ts';
import { useFolder } from '../../support/folder.ts';
import { openGate } from '../../support/gate.ts';
import { heldAt } from '../../support/held.ts';
import { useStore } from '../../support/store.ts';

const db = useStore();
const folder = useFolder();

let files = 0;

/** What a load could not record while ClickHouse was away; it would otherwise be waited for until it counts as dead. */
const ended = `INSERT INTO loads (* EXCEPT version)
  SELECT * EXCEPT version REPLACE ('failed' AS state) FROM loads AS l FINAL WHERE l.state = 'running'`;

/** A load of ten events, or of a file that is loaded, that is about to send a statement to a ClickHouse that has just gone away. */
async function loadAtClosedGate(statement: RegExp, dedupe: boolean, isLoaded = false) {
  const account = `away-${++files}`;
  const file = join(folder, `${account}.ndjson`);
  writeFileSync(file, ndjson(Array.from({ length: 10 }, () => event({ advertiser_id: account }))));
  const way = await openGate(db.address.url);
  const store = connect({ ...db.address, url: way.url });
  const held = heldAt(store, statement);
  const stop = new AbortController();
  const onRetry = vi.fn();
  const input = new LocalFile(file);
  const timezone = 'Asia/Tokyo';
  const options = { input, timezone, dedupe, chunkBytes: 1 << 20, now: () => new Date(), onRetry };
  if (isLoaded) await loadEvents({ ...options, store: db.store });
  const own = { ...options, store: held.store, signal: stop.signal };
  const load = (isLoaded ? loadFiles([input], { ...own, readingOf: plainReading }) : loadEvents(own)).catch(
    (error: unknown) => error,
  );
  await held.reached;
  way.close();
  held.release();
  return { account, load, stop, onRetry, way, options, end: () => store.close() };
}

const statements: [string, RegExp, boolean, boolean?][] = [
  ['looks whether the file has failed', /SELECT file AS name FROM loads/, false, true],
  ['counts open rejected rows', /AS open FROM rejected_rows/, false, true],
  ['looks up chunks', /AS content\s+FROM load_chunks AS c WHERE head IN .* GROUP BY head, chunk/, false],
  ['claims a chunk', /INTO load_chunks/, false],
  ['sends events', /INSERT INTO incoming /, false],
  ['sends events with --dedupe', /INSERT INTO incoming_staging/, true],
  ['counts what it sent', /FROM rejected_rows WHERE chunk IN .* GROUP BY chunk/, false],
  ['marks a chunk as loaded', /INTO load_chunks [^)]*, loaded_at\)/, false],
  ['looks whether all times are midnight', /FROM events AS e\s.*formatDateTime/s, false],
];

test.each(statements)(
  'a load that %s while ClickHouse is away says so, and one Ctrl-C ends it',
  async (_, statement, dedupe, isLoaded) => {
    const { account, load, stop, onRetry, options, end } = await loadAtClosedGate(
      statement,
      dedupe,
      isLoaded,
    );
    await vi.waitFor(() => expect(onRetry).toHaveBeenCalled(), { timeout: 20_000 });
    stop.abort();
    // Long before the two minutes for which a load waits for ClickHouse.
    expect(await load).toBeInstanceOf(Stopped);
    await end();

    await db.store.command({ query: ended });
    await loadEvents({ ...options, store: db.store });
    const query = 'SELECT toUInt32(count()) AS events FROM events WHERE advertiser_id = {account:String}';
    expect(await select(db.store, query, { account })).toEqual([{ events: 10 }]);
  },
);

test('a load rides out a ClickHouse that goes away while events are counted', async () => {
  const { load, onRetry, way, end } = await loadAtClosedGate(
    /FROM rejected_rows WHERE chunk IN .* GROUP BY chunk/,
    false,
  );
  await vi.waitFor(() => expect(onRetry).toHaveBeenCalled(), { timeout: 20_000 });
  await way.open();
  expect(await load).toMatchObject({ rows: 10 });
  way.close();
  await end();
});

test('a failure of ClickHouse is no failure of the file, and says how to continue', async () => {
  const file = join(folder, 'refused.ndjson');
  writeFileSync(file, ndjson([event()]));
  const store: typeof db.store = Object.create(db.store);
  // As a table that is gone: the text is that of ClickHouse.
  store.exec = (params: Parameters<typeof store.exec>[0]) =>
    db.store.exec(/INTO incoming/.test(params.query) ? { query: 'INSERT INTO gone SELECT 1' } : params);
  const load = loadEvents({ store, input: new LocalFile(file), chunkBytes: 1 << 20, now: () => new Date() });
  await expect(load).rejects.toThrow(
    /refused.ndjson: ClickHouse failed: .*gone.* Rows already loaded are kept. Run the same command again/,
  );
  await expect(load).rejects.toBeInstanceOf(LoadError);
});
