import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { EventType } from '../../catalog/events.ts';
import type { Store } from '../../clickhouse/client.ts';
import { LocalFile } from '../../ingest/input/local-file.ts';
import { loadLookupList, lookupLists } from '../../ingest/lists/lookup-lists.ts';
import { type LoadResult, loadEvents } from '../../ingest/load/load-events.ts';

/** One line of input; absent fields are absent from the line. Money is text, exact. */
export interface EventLine {
  event_id: string;
  event_time: string;
  event_type: EventType;
  advertiser_id?: string;
  campaign_id?: string;
  creative_id?: string;
  publisher_id?: string;
  ad_unit_id?: string;
  site_id?: string;
  device?: string;
  quantity?: number;
  spend?: string;
  revenue?: string;
  confirmed?: boolean;
  reason?: string;
}

let made = 0;

/** An event of both sides on 2026-03-01, an impression unless told otherwise. */
export function event(fields: Partial<EventLine> = {}): EventLine {
  return {
    event_id: `event-${++made}`,
    event_time: '2026-03-01T12:00:00.000Z',
    event_type: 'impression',
    advertiser_id: 'advertiser',
    campaign_id: 'campaign',
    publisher_id: 'publisher',
    ad_unit_id: 'ad-unit',
    ...fields,
  };
}

/** The line as NDJSON; money is written as a number, digit for digit. */
export function ndjson(events: readonly EventLine[]): string {
  return events
    .map((line) =>
      JSON.stringify(line).replace(
        /"(spend|revenue)":"([^"]*)"/g,
        (_, field, amount) => `"${field}":${amount}`,
      ),
    )
    .map((line) => `${line}\n`)
    .join('');
}

/** Runs `work` with a file of that name and content, and removes it. */
export async function withFile<T>(
  name: string,
  content: string | Uint8Array,
  work: (path: string) => Promise<T>,
): Promise<T> {
  const folder = await mkdtemp(join(tmpdir(), 'adtally-file-'));
  try {
    const path = join(folder, name);
    await writeFile(path, content);
    return await work(path);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** Loads events through the real loader. */
export function load(
  store: Store,
  events: readonly EventLine[],
  chunkBytes = 1 << 20,
  { dedupe = false, roundMoney = false } = {},
): Promise<LoadResult> {
  return withFile('events.ndjson', ndjson(events), (file) =>
    loadEvents({
      store,
      input: new LocalFile(file),
      chunkBytes,
      dedupe,
      roundMoney,
      now: () => new Date('2026-03-02T00:00:00Z'),
    }),
  );
}

/** Loads names or confirmations through the real loader; rows in the order of the list's columns. */
export function loadRows(
  store: Store,
  list: keyof typeof lookupLists,
  rows: readonly (readonly string[])[],
): Promise<number> {
  const { columns } = lookupLists[list];
  const lines = rows.map((row) =>
    JSON.stringify(Object.fromEntries(columns.map((name, n) => [name, row[n]]))),
  );
  return withFile(`${list}.ndjson`, lines.join('\n'), (file) =>
    loadLookupList(store, lookupLists[list], new LocalFile(file)),
  );
}
