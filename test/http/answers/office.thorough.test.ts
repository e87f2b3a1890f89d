import { execFile } from 'node:child_process';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { parseXml, XmlElement } from '@rgrove/parse-xml';
import { expect, test } from 'vitest';
import { event, load, loadRows } from '../../support/events.ts';
import { hasProgram } from '../../support/programs.ts';
import { useService } from '../../support/service.ts';
import { useStore } from '../../support/store.ts';

const db = useStore();
const service = useService(db);

/** The cells of a workbook as LibreOffice has them: numbers with every digit that it keeps, and days. */
async function opened(workbook: Uint8Array): Promise<string[][]> {
  if (!hasProgram('soffice', 'libreoffice-calc-nogui')) throw new Error('no LibreOffice for this test');
  const folder = await mkdtemp(join(tmpdir(), 'adtally-office-'));
  try {
    await writeFile(join(folder, 'report.xlsx'), workbook);
    const profile = `-env:UserInstallation=file://${folder}/profile`;
    const to = ['--convert-to', 'fods', '--outdir', folder, join(folder, 'report.xlsx')];
    await promisify(execFile)('soffice', ['--headless', '--norestore', profile, ...to]);
    const { root } = parseXml(await readFile(join(folder, 'report.fods'), 'utf8'));
    return root ? rowsOf(root) : [];
  } finally {
    await rm(folder, { recursive: true, force: true, maxRetries: 5 });
  }
}

function within(element: XmlElement, name: string): XmlElement[] {
  return element.children
    .filter((child) => child instanceof XmlElement)
    .flatMap((child) => (child.name === name ? [child] : within(child, name)));
}

/** Cells that are alike are told once; those behind the last one that has something are none. */
function rowsOf(document: XmlElement): string[][] {
  return within(document, 'table:table-row')
    .map((row) =>
      within(row, 'table:table-cell').flatMap((cell) => {
        const { attributes } = cell;
        const text = attributes['office:value'] ?? attributes['office:date-value'] ?? cell.text.trim();
        const count = Number(attributes['table:number-columns-repeated'] ?? 1);
        return count > 100 ? [] : Array.from({ length: count }, () => text);
      }),
    )
    .filter((row) => row.length > 0);
}

test('LibreOffice opens a workbook, and its cells are what the API answers', async () => {
  const names = {
    large: 'n'.repeat(1024),
    arabic: 'خصم 50%',
    turned: 'Turned \u202e',
    formula: '=1+1',
    quoted: '"a", b',
  };
  const spent = (campaign_id: string, spend: string, day = 1) =>
    event({
      ...{ advertiser_id: 'shop', campaign_id, event_type: 'referral', spend },
      event_time: `2026-03-0${day}T12:00:00.000Z`,
    });
  const lines = [
    ...Array.from({ length: 20 }, () => spent('large', '500000000000.25')),
    ...[
      spent('arabic', '1'),
      spent('turned', '-98765.4'),
      spent('formula', '0'),
      spent('quoted', '0.000001'),
    ],
    spent('arabic', '-7.25', 3),
    event({ advertiser_id: 'shop', campaign_id: 'quoted', quantity: 4_000_000_000 }),
  ];
  expect((await load(db.store, lines)).rejectedRows).toBe(0);
  await loadRows(
    db.store,
    'campaigns',
    Object.entries(names).map(([id, name]) => ['shop', id, name]),
  );
  const days = { start_time: '2026-03-01', end_time: '2026-03-31', totals: true };
  const path = '/v1/campaigns/breakdowns/date';
  const { rows, totals } = (await (await service.post(path, 'shop', days)).json().then(Object)).result;
  const accept = 'application/vnd.openxmlformats-officedocument.spreadsheetml.sheet';
  const workbook = await service.post(path, 'shop', days, { accept });
  const [head = [], ...cells] = await opened(new Uint8Array(await workbook.arrayBuffer()));
  expect(head).toEqual(Object.keys(rows[0]));
  const value = (text = '', like: unknown) => (typeof like === 'number' ? Number(text) : text);
  const read = cells.map((line, n) =>
    Object.fromEntries(head.map((name, at) => [name, value(line[at], (rows[n] ?? totals)[name])])),
  );
  expect(read.slice(0, -1)).toEqual(rows);
  expect(read.at(-1)).toMatchObject(totals);
});
