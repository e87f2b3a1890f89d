import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';
import { beforeAll, expect, test } from 'vitest';
import type { Adtally } from '../../clients/typescript/src/index.ts';
import { breaksOff, useBrokenServer } from '../support/broken-server.ts';
import { event, load } from '../support/events.ts';
import { useService } from '../support/service.ts';
import { useStore } from '../support/store.ts';
import { useBrowser } from './browser.ts';

/** The client for TypeScript as part of somebody's page, on the origin of the service. */
const db = useStore();
const service = useService(db);
const broken = useBrokenServer();
const browser = useBrowser();
const source = fileURLToPath(new URL('../../clients/typescript/src/index.ts', import.meta.url));
let script = '';

beforeAll(async () => {
  await load(db.store, [
    event({ device: 'mobile', spend: '1.25' }),
    event({ device: 'tv', campaign_id: 'größer', spend: '0.000001' }),
  ]);
  const { outputFiles } = await build({
    entryPoints: [source],
    bundle: true,
    write: false,
    format: 'iife',
    globalName: 'client',
  });
  script = outputFiles[0]?.text ?? '';
});

declare const client: { readonly Adtally: typeof Adtally };

/** What the page gets of a report, row by row, and how that ends. */
async function rowsFrom(url: string, token: string): Promise<{ rows: unknown[]; error: string }> {
  const page = await browser.open('about:blank');
  await page.route(`${url}/own`, (route) =>
    route.fulfill({ contentType: 'text/html', body: '<title>own</title>' }),
  );
  await page.goto(`${url}/own`);
  await page.addScriptTag({ content: script });
  return page.evaluate(
    async (options) => {
      const rows: unknown[] = [];
      const march = { start_time: '2026-03-01', end_time: '2026-03-31' };
      try {
        for await (const row of new client.Adtally(options).rows('campaigns/device', march)) rows.push(row);
        return { rows, error: '' };
      } catch (error) {
        return { rows, error: String(error) };
      }
    },
    { url, token },
  );
}

test('a page gets the rows of its account', async () => {
  const { rows, error } = await rowsFrom(service.url, await service.token('advertiser'));
  expect(error).toBe('');
  expect(rows).toMatchObject([
    { campaign: 'campaign', device: 'mobile', spent: 1.25 },
    { campaign: 'größer', device: 'tv', spent: 0.000001 },
  ]);
});

test('a redirect is told as one, though the browser hides its status and address', async () => {
  broken.answers((response) => void response.writeHead(302, { location: '/sign-in' }).end());
  const { error } = await rowsFrom(broken.url, 'adt_x');
  expect(error).toBe('AdtallyError: HTTP status 0: redirects to an address that the browser hides');
  expect(broken.requests).toBe(1);
});

test('an answer that breaks off throws after the last whole row', async () => {
  broken.answers(breaksOff('{"campaign":"a"}\n', '{"camp'));
  const { rows, error } = await rowsFrom(broken.url, 'adt_x');
  expect(rows).toEqual([{ campaign: 'a' }]);
  expect(error).toMatch(/IncompleteAnswer/);
});
