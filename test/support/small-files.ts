import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type EventLine, ndjson } from './events.ts';

/** A folder of files with a few events each, of every format, some of them odd. Returns how many events there are. */
export async function writeSmallFiles(
  folder: string,
  files: number,
  events: (count: number) => EventLine[],
): Promise<number> {
  await mkdir(folder);
  let all = 0;
  for (let n = 0; n < files; n++) {
    const lines = events(1 + (n % 3)).map((line, m) => ({ ...line, creative_id: `"${n}", line\n${m}` }));
    const columns = Object.keys(lines[0] ?? {}) as (keyof (typeof lines)[0])[];
    const cells = (quote: (cell: unknown) => string, delimiter: string) =>
      [columns, ...lines.map((line) => columns.map((name) => quote(line[name])))]
        .map((row) => row.join(delimiter))
        .join('\n');
    const inQuotes = (cell: unknown) => `"${`${cell ?? ''}`.replaceAll('"', '""')}"`;
    const [name, content] = [
      ['ndjson', ndjson(lines)],
      ['csv', `${cells(inQuotes, ',')}\n`],
      ['tsv', cells(inQuotes, '\t')],
    ][n % 3] as [string, string];
    await writeFile(join(folder, `${String(n).padStart(3, '0')}.${name}`), content);
    all += lines.length;
  }
  return all;
}
