import { setTimeout as delay } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { freePort } from '../../bench/harness/free-ports.ts';
import { catalog } from '../../catalog/catalog.ts';
import { select } from '../../clickhouse/client.ts';
import { verifyRollups } from '../../clickhouse/consistency/verify-rollups.ts';
import { createToken } from '../../src/accounts/tokens.ts';
import { event } from '../support/events.ts';
import { useFolder } from '../support/folder.ts';
import { environmentOf, listening, useCommands } from '../support/process.ts';
import { bodyOf, sendTo } from '../support/receiver.ts';
import { startNginx } from '../support/shipped-proxies.ts';
import { useStore } from '../support/store.ts';

const db = useStore();
const commands = useCommands();
const folder = useFolder();

/** nginx, which repeats what the first service does not answer in time, or at all, to the second. */
async function nginxBefore(first: string, second: string) {
  const port = await freePort();
  const upstream = `upstream receive { server ${new URL(first).host} max_fails=0; server ${new URL(second).host} backup max_fails=0; }`;
  const server = `server { listen 127.0.0.1:${port}; client_max_body_size 64m; location / { proxy_pass http://receive;
    proxy_http_version 1.1; proxy_read_timeout 3s; proxy_next_upstream error timeout non_idempotent; } }`;
  const url = `http://127.0.0.1:${port}`;
  const configuration = `events {}\nhttp {\n${upstream}\n${server}\n}`;
  const nginx = await startNginx(folder, configuration, `${url}/healthz`);
  return { url, stop: () => nginx.kill('SIGTERM') };
}

test('a body that nginx sends again, because a service answers late or is killed, counts once', async () => {
  const start = (trustMs: string) =>
    commands.start(['receive'], {
      ...environmentOf(db.address),
      RECEIVE_PORT: '0',
      ANSWER_TRUST_MS: trustMs,
    });
  // It loads bodies, and keeps its answers for longer than nginx waits.
  const late = start('60000');
  const prompt = start('0');
  const nginx = await nginxBefore(await listening(late), await listening(prompt));
  const authorization = `Bearer ${await createToken(db.store, { account: 'web', label: '', purpose: 'ingest' })}`;
  /** As senders do: again until it is told that the body is loaded. */
  const send = async (account: string): Promise<void> => {
    const events = Array.from({ length: 50 }, (_, n) => event({ advertiser_id: account, device: `${n}` }));
    for (;;) {
      const { status, json } = await sendTo(`${nginx.url}/v1/events`, bodyOf(events), {
        authorization,
      }).catch(() => ({ status: 0, json: {} as Record<string, unknown> }));
      if (status === 200) return void expect(Number(json.accepted) + Number(json.duplicates)).toBe(50);
      await delay(50);
    }
  };
  await Promise.all(['late-1', 'late-2', 'late-3'].map(send));
  const sending = Promise.all(['killed-1', 'killed-2', 'killed-3'].map(send));
  await delay(150);
  await late.kill('SIGKILL');
  await sending;
  await send('dead');
  const counts = await select<{ account: string; events: number }>(
    db.store,
    'SELECT advertiser_id AS account, toFloat64(count()) AS events FROM events GROUP BY account ORDER BY account',
  );
  const accounts = ['dead', 'killed-1', 'killed-2', 'killed-3', 'late-1', 'late-2', 'late-3'];
  expect(counts).toEqual(accounts.map((account) => ({ account, events: 50 })));
  const days = { from: '2026-03-01', to: '2026-03-01' };
  expect((await verifyRollups(db.store, catalog, days)).differences).toEqual([]);
  await nginx.stop();
  expect(await prompt.kill('SIGTERM')).toMatchObject({ code: 0 });
});
