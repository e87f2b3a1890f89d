import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import { text } from 'node:stream/consumers';
import { parse as parseCsv } from 'csv-parse/sync';
import type { Store } from '../../clickhouse/client.ts';
import { writeRejects } from '../../ingest/history/load-history.ts';
import type { WrittenEvent } from './written-events.ts';

/** Writes the export of a load's rejected rows with what is right in each; returns the file. */
export async function correctedExport(
  store: Store,
  load: string,
  wrong: readonly WrittenEvent[],
  folder: string,
  kind: 'csv' | 'ndjson',
): Promise<string> {
  const out = new PassThrough();
  const write = writeRejects(store, out, [load], kind).finally(() => out.end());
  const [exported] = await Promise.all([text(out), write]);
  const right = new Map(wrong.map((event) => [event.counted.event_id, event.wrong]));
  const path = join(folder, `corrected.${kind}`);
  if (kind === 'ndjson') {
    const lines = exported.split('\n').filter((line) => line !== '');
    const rows = lines.map((line) => JSON.parse(line));
    for (const { event } of rows) {
      const at = right.get(event.event_id);
      if (at) event[at.field] = at.value;
    }
    await writeFile(path, rows.map((row) => JSON.stringify(row)).join('\n'));
    return path;
  }
  const rows: Record<string, string>[] = parseCsv(exported, { columns: true });
  for (const row of rows) {
    const at = right.get(row.event_id ?? '');
    if (at) row[at.field] = at.value;
  }
  const cells = [Object.keys(rows[0] ?? {}), ...rows.map((row) => Object.values(row))];
  const line = (row: readonly string[]) => row.map((cell) => `"${cell.replaceAll('"', '""')}"`).join(',');
  await writeFile(path, cells.map(line).join('\n'));
  return path;
}
