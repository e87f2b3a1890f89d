import { afterAll, expect, test } from 'vitest';
import { freePorts } from '../../bench/harness/free-ports.ts';
import { createToken } from '../../src/accounts/tokens.ts';
import { insertLarge } from '../support/accounts.ts';
import { useFolder } from '../support/folder.ts';
import { type Command, environmentOf, listening, postJson, useCommands } from '../support/process.ts';
import { proxyOfCluster, startNginx } from '../support/shipped-proxies.ts';
import { useStore } from '../support/store.ts';

/** Two services behind nginx, as docker-compose.cluster.yml has them, each replaced while callers ask for reports. */
const db = useStore();
const commands = useCommands();
const folder = useFolder();
let nginx: Command | undefined;
afterAll(async () => {
  await nginx?.kill('SIGTERM');
});

const rows = 20_000;
const callers = 8;

test('no report fails while one service after the other is replaced', async () => {
  await insertLarge(db.store, ['account'], rows);
  const token = await createToken(db.store, { account: 'account', label: '' });
  const [one = 0, two = 0, listen = 0] = await freePorts(3);
  const serve = async (port: number): Promise<Command> => {
    const env = { PORT: `${port}`, RATE_LIMIT_REQUESTS: '1000000', TRUSTED_PROXIES: '127.0.0.1' };
    const command = commands.start(['serve'], { ...environmentOf(db.address), ...env });
    await listening(command);
    return command;
  };
  const services = [await serve(one), await serve(two)];
  const url = `http://127.0.0.1:${listen}`;
  nginx = await startNginx(folder, proxyOfCluster([one, two], listen), `${url}/healthz`);

  const ends = new Map<string, number>();
  let asking = true;
  const call = async (path: string) => {
    while (asking) {
      const end = await postJson(
        url + path,
        token,
        '{"start_time":"2000-01-01","end_time":"2100-01-01"}',
      ).then(
        async (answer) => {
          const text = await answer.text();
          if (answer.status !== 200) return `${answer.status} ${text}`;
          return JSON.parse(text).result.rows.length > 0 ? 'whole' : 'empty';
        },
        (error) => `broken: ${error.cause ?? error}`,
      );
      ends.set(end, (ends.get(end) ?? 0) + 1);
    }
  };
  const paths = ['/v1/campaigns', '/v1/campaigns/breakdowns/device_creative_date'];
  const calls = Array.from({ length: callers }, (_, n) => call(paths[n % 2] ?? ''));
  const answered = () => [...ends.values()].reduce((sum, count) => sum + count, 0);
  const more = async () => {
    const before = answered();
    await expect.poll(answered, { timeout: 60_000 }).toBeGreaterThan(before + 30);
  };
  await more();
  for (const round of [0, 1]) {
    for (const [n, port] of [one, two].entries()) {
      expect((await services[n]?.kill('SIGTERM'))?.code).toBe(0);
      await more();
      services[n] = await serve(port);
      // nginx tries it again when the 5 s of its fail_timeout are over.
      const asked = async () =>
        /http_requests_total\{[^}]*\/v1/.test(await (await fetch(`http://127.0.0.1:${port}/metrics`)).text());
      await expect.poll(asked, { timeout: 60_000, message: `round ${round}` }).toBe(true);
    }
  }
  asking = false;
  await Promise.all(calls);
  console.log(`${answered()} reports while 4 services were replaced:`, Object.fromEntries(ends));
  expect([...ends.keys()]).toEqual(['whole']);
});
