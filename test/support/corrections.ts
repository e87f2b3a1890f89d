import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import { text } from 'node:stream/consumers';
import { parse as parseCsv } from 'csv-parse/sync';
import type { Store } from '../../clickhouse/client.ts';
import { writeRejects } from '../../ingest/history/load-history.ts';
import type { WrittenEvent } from './written-events.ts';

type Fields = Record<string, unknown>;

/** The export of a load's rejected rows with other values in some fields of each. */
export async function correctedRows(
  store: Store,
  load: string,
  kind: 'csv' | 'ndjson',
  correctionOf: (fields: Fields, row: number) => Fields | undefined,
): Promise<string> {
  const out = new PassThrough();
  const write = writeRejects(store, out, [load], kind).finally(() => out.end());
  const [exported] = await Promise.all([text(out), write]);
  if (kind === 'ndjson') {
    const lines = exported.split('\n').filter((line) => line !== '');
    const rows = lines.map((line) => JSON.parse(line));
    for (const [n, { event }] of rows.entries()) Object.assign(event, correctionOf(event, n));
    return rows.map((row) => JSON.stringify(row)).join('\n');
  }
  const rows: Fields[] = parseCsv(exported, { columns: true });
  for (const [n, row] of rows.entries()) Object.assign(row, correctionOf(row, n));
  const cells = [Object.keys(rows[0] ?? {}), ...rows.map((row) => Object.values(row))];
  return cells
    .map((line) => line.map((cell) => `"${String(cell).replaceAll('"', '""')}"`).join(','))
    .join('\n');
}

/** Writes the export of a load's rejected rows with what is right in each; returns the file. */
export async function correctedExport(
  store: Store,
  load: string,
  wrong: readonly WrittenEvent[],
  folder: string,
  kind: 'csv' | 'ndjson',
): Promise<string> {
  const right = new Map(wrong.map((event) => [event.counted.event_id, event.wrong]));
  const rows = await correctedRows(store, load, kind, ({ event_id }) => {
    const at = right.get(String(event_id));
    return at && { [at.field]: at.value };
  });
  const path = join(folder, `corrected.${kind}`);
  await writeFile(path, rows);
  return path;
}
