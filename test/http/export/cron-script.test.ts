import { execFile } from 'node:child_process';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { openLog } from '../../../src/observe/log.ts';
import { begins, useBrokenServer } from '../../support/broken-server.ts';
import { event, load } from '../../support/events.ts';
import { useFolder } from '../../support/folder.ts';
import { hasProgram } from '../../support/programs.ts';
import { useService } from '../../support/service.ts';
import { useStore } from '../../support/store.ts';

const lines: string[] = [];
const log = openLog('info', { write: (line) => void lines.push(line) });
const db = useStore();
// Three requests of the script are in one window also on a slow machine.
const service = useService(db, { RATE_LIMIT_REQUESTS: '3', RATE_LIMIT_WINDOW_SECONDS: '5' }, log);
const broken = useBrokenServer();
const [copies, october] = [useFolder(), useFolder()];

const days = ['2026-03-01', '2026-03-02', '2026-03-03', '2026-03-04', '2026-03-05'];

test('the script for cron of docs/reports.md has a file of each day, also of more days than the request limit lets through', async () => {
  if (!hasProgram('jq')) throw new Error('no jq for this test: apt-get install jq');
  const account = { advertiser_id: 'copied', publisher_id: '', ad_unit_id: '' };
  await load(
    db.store,
    days.map((day) => event({ ...account, event_time: `${day}T00:00:00Z` })),
  );
  const [, script = ''] =
    /^```sh\n(#!\/bin\/sh\nset -eu\n.*?)^```$/ms.exec(await readFile('docs/reports.md', 'utf8')) ?? [];
  const here = script.replace('cd /srv/ads\n', '').replace('https://ads.example.com', service.url);
  const env = { ...process.env, TOKEN: await service.token('copied') };
  await promisify(execFile)('sh', ['-c', here], { cwd: copies, env });
  expect(lines.map((line) => JSON.parse(line).status)).toContain(429);
  const files = days.map((day) => `${day}.csv`);
  expect((await readdir(copies)).sort()).toEqual([...files, 'changed_until', 'changes.json']);
  expect(await readFile(join(copies, '2026-03-05.csv'), 'utf8')).toMatch(/^"start_time",.*\n"2026-03-05",/);
});

test('the curl of docs/recipes.md that asks for what is new keeps neither file nor tag of an answer that broke off', async () => {
  const blocks = (await readFile('docs/recipes.md', 'utf8')).matchAll(/^```sh\n(.*?)^```$/gms);
  const [command = ''] = [...blocks].flatMap(([, block = '']) => (block.includes('--etag') ? block : []));
  const etag = 'W/"now"';
  const asked: unknown[] = [];
  broken.answers(
    (response) => begins(response, { etag }).write('"day"\n', () => response.destroy()),
    (response) => {
      asked.push(response.req.headers['if-none-match']);
      if (asked.at(-1) === etag) response.writeHead(304, { etag }).end();
      else begins(response, { etag }).end('"day"\n1\n');
    },
  );
  const env = { ...process.env, TOKEN: 'none' };
  const run = () =>
    promisify(execFile)('sh', ['-c', command.replace('https://ads.example.com', broken.url)], {
      cwd: october,
      env,
    });
  await expect(run()).rejects.toThrow();
  for (let times = 0; times < 2; times++) {
    await run();
    expect(await readFile(join(october, 'october.csv'), 'utf8')).toBe('"day"\n1\n');
  }
  expect(asked).toEqual([expect.not.stringContaining(etag), etag]);
});
