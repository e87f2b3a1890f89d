import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { freePort } from '../../../bench/harness/free-ports.ts';
import { event, ndjson } from '../../support/events.ts';
import { useFolder } from '../../support/folder.ts';
import {
  type Command,
  environmentOf,
  listening,
  outputOf,
  postJson,
  startProcess,
  useCommands,
} from '../../support/process.ts';
import { useStore } from '../../support/store.ts';

const db = useStore();
const commands = useCommands();
const folder = useFolder();
let nginx: Command;
let env: Record<string, string>;

/** nginx before ClickHouse, with its limits; only bodies may be as large as they are. */
beforeAll(async () => {
  const port = await freePort();
  const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'];
  const configuration = `${process.getuid?.() === 0 ? 'user root;' : ''}
    daemon off; pid ${folder}/pid; error_log ${folder}/error.log; events {}
    http {
      access_log off; ${temporary.map((name) => `${name}_temp_path ${folder}/${name};`).join(' ')}
      client_max_body_size 0;
      server { listen 127.0.0.1:${port}; location / { proxy_pass ${db.address.url}; } }
    }`;
  writeFileSync(join(folder, 'nginx.conf'), configuration);
  nginx = startProcess('nginx', ['-p', folder, '-c', join(folder, 'nginx.conf')]);
  const url = `http://127.0.0.1:${port}`;
  const answers = () => fetch(url).then(Boolean, () => false);
  await vi.waitUntil(answers, { timeout: 20_000 });
  env = environmentOf({ ...db.address, url });
});
afterAll(async () => {
  expect((await nginx.kill('SIGTERM')).stderr).toBe('');
});

interface Summary {
  readonly loads: readonly string[];
  readonly rows: number;
  readonly rejected_rows: number;
}

/** Loads files that each have a row that is rejected. */
async function loaded(...args: string[]): Promise<Summary> {
  const { code, stdout, stderr } = await commands.run(['ingest', 'events', '--json', ...args], env);
  expect(code, stderr).toBe(4);
  return JSON.parse(stdout);
}

async function done(...args: string[]): Promise<string> {
  const stdout = await outputOf(commands.run(args, env));
  return stdout.trim();
}

const campaigns = Array.from({ length: 60 }, (_, n) => `a campaign with a long name ${n}`);

/** Not loaded: they make a filter long. */
const others = campaigns.flatMap((name) => [1, 2, 3, 4, 5].map((n) => `${name}, another ${n}`));

/** One file of events, and a folder of small ones with long names; a bad row in each. */
function exportedFiles(): { large: string; small: string } {
  const bad = event({ advertiser_id: 'a', event_time: 'never' });
  const large = join(folder, 'large.ndjson');
  const lines = Array.from({ length: 500 }, () => event({ advertiser_id: 'b' }));
  writeFileSync(large, ndjson([...lines, bad]));
  const small = join(folder, 'a file for each hour');
  mkdirSync(small);
  for (const [n, campaign_id] of campaigns.entries()) {
    const path = join(small, `${'as long as the names of exports are '.repeat(3)}${n}.ndjson`);
    writeFileSync(path, ndjson([event({ advertiser_id: 'a', campaign_id }), bad]));
  }
  return { large, small };
}

test('behind nginx with its limits every step of a load works, and a report with a long filter', async () => {
  const { large, small } = exportedFiles();
  const first = await loaded('--chunk-bytes', '5000', large);
  expect(first).toMatchObject({ rows: 500, rejected_rows: 1 });
  await done('unload', ...first.loads);
  expect(await loaded('--dedupe', large)).toMatchObject({ rows: 500, rejected_rows: 1 });
  expect(await loaded(small)).toMatchObject({ rows: 60, rejected_rows: 60 });
  await done('verify');

  const serve = commands.start(['serve'], { ...env, PORT: '0' });
  const url = await listening(serve);
  const asked = await postJson(`${url}/v1/campaigns`, await done('token', 'create', 'a'), {
    start_time: '2026-01-01',
    end_time: '2026-12-31',
    filters: { campaign_id: [...campaigns.slice(1), ...others] },
  });
  const answer = await asked.text();
  expect(asked.status, answer).toBe(200);
  expect(JSON.parse(answer).result.rows).toHaveLength(59);
  expect((await serve.kill('SIGTERM')).code).toBe(0);
});
