import { createHash, randomBytes } from 'node:crypto';
import { setMaxListeners } from 'node:events';
import { readFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { Command } from 'commander';
import { connect } from '../../clickhouse/client.ts';
import { acquireEmbedded } from '../../clickhouse/embedded/embedded.ts';
import { migrate } from '../../clickhouse/migrate/migrate.ts';
import { createToken } from '../../src/accounts/tokens.ts';
import { startOf } from '../support/compiled.ts';
import { attacks } from '../support/hostile-callers.ts';
import { environmentOf, listening, startProcess } from '../support/process.ts';
import { seededRandom } from '../support/random.ts';

/**
 * Honest callers, first alone and then with one hostile caller beside every nine of them. Fails on a 5xx, a wrong row,
 * an honest caller who is refused, or memory that grows: `node --import tsx test/long/hostile.ts --minutes 60`.
 */
const { minutes, honest, pause, seed } = new Command('hostile')
  .option('--minutes <n>', 'in all; a tenth of them without hostile callers', Number, 60)
  .option('--honest <n>', 'how many honest callers, of an account each', Number, 36)
  .option('--pause <ms>', 'between two requests of an honest caller', Number, 3_000)
  .option('--seed <n>', 'of who asks for what', Number, 1)
  .parse()
  .opts<{ minutes: number; honest: number; pause: number; seed: number }>();
const hostile = Math.max(1, Math.round(honest / 9));
const month = { start_time: '2026-01-01', end_time: '2026-01-31' };
const sizes = {
  small: { path: '/v1/campaigns', body: month },
  large: {
    path: '/v1/campaigns/breakdowns/device_creative_date',
    body: { ...month, end_time: '2026-12-31' },
  },
};
type Size = keyof typeof sizes;

const random = seededRandom(seed);
const faults: string[] = [];
const say = (text: string): void => void process.stdout.write(`${text}\n`);

async function ask(
  url: string,
  token: string,
  size: Size,
): Promise<{ status: number; ms: number; sum: string }> {
  const startedAt = performance.now();
  const response = await fetch(`${url}${sizes[size].path}`, {
    method: 'POST',
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    body: JSON.stringify(sizes[size].body),
  });
  const text = await response.text();
  const sum = createHash('sha256')
    .update(text.replace(/"last_update_time":"[^"]*"/, ''))
    .digest('hex');
  return { status: response.status, ms: performance.now() - startedAt, sum };
}

const percentile = (times: readonly number[], part: number): number =>
  Math.round(times.toSorted((a, b) => a - b)[Math.floor((times.length - 1) * part)] ?? Number.NaN);

const folder = await mkdtemp(join(tmpdir(), 'adtally-hostile-'));
const lease = await acquireEmbedded(folder);
const address = { ...lease.address, database: `hostile_${randomBytes(4).toString('hex')}` };
try {
  await migrate(address);
  const store = connect(address);
  for (const [table, extra] of [
    ['campaigns_date', ''],
    ['campaigns_device_creative_date', ', device, creative_id'],
  ]) {
    await store.command({
      query: `INSERT INTO ${table} (account_id, day, campaign_id, impressions${extra})
              SELECT concat('account-', toString(number % ${honest + hostile})),
                     toDate('2026-01-01') + intDiv(number, 1000) % 300, concat('campaign-', toString(number % 97)),
                     number${extra && ", 'mobile', toString(number)"}
              FROM numbers(${(honest + hostile) * 20_000})`,
    });
  }
  const tokens = await Promise.all(
    Array.from({ length: honest + hostile }, (_, n) =>
      createToken(store, { account: `account-${n}`, label: '' }),
    ),
  );
  await store.close();
  const serve = startProcess(process.execPath, [...startOf('src/cli'), 'serve'], {
    ...environmentOf(address),
    PORT: '0',
  });
  const url = await listening(serve);
  const memory: number[] = [];
  const measured = setInterval(() => {
    const status = readFileSync(`/proc/${serve.pid}/status`, 'utf8');
    memory.push(Math.round(Number(/^VmRSS:\s+(\d+) kB/m.exec(status)?.[1]) / 1024));
  }, 60_000);
  const right = new Map<string, string>();
  const times = { alone: [] as number[], beside: [] as number[] };
  const answers: Record<string, number> = {};

  /** All honest callers at once for some time. */
  const callFor = async (ms: number, into: number[]): Promise<void> => {
    const until = performance.now() + ms;
    const caller = async (n: number): Promise<void> => {
      await delay(pause * random());
      while (performance.now() < until) {
        const size = random() < 0.1 ? 'large' : 'small';
        const { status, ms: took, sum } = await ask(url, tokens[n] ?? '', size);
        answers[`${size} ${status}`] = (answers[`${size} ${status}`] ?? 0) + 1;
        const expected = right.get(`${n} ${size}`);
        if (expected === undefined) right.set(`${n} ${size}`, sum);
        else if (status === 200 && sum !== expected) faults.push(`wrong rows: account ${n}, ${size}`);
        if (status !== 200) faults.push(`account ${n}, ${size}: ${status}`);
        if (size === 'small') into.push(took);
        await delay(2 * pause * random());
      }
    };
    await Promise.all(Array.from({ length: honest }, (_, n) => caller(n)));
  };

  // What is right is what they see while nobody disturbs them.
  for (let n = 0; n < honest; n++) {
    for (const size of ['small', 'large'] as const) {
      const { status, sum } = await ask(url, tokens[n] ?? '', size);
      if (status !== 200) throw new Error(`account ${n}, ${size}: ${status}`);
      right.set(`${n} ${size}`, sum);
    }
  }
  await callFor(minutes * 6_000, times.alone);
  const ended = new AbortController();
  setMaxListeners(0, ended.signal);
  const attacked: Record<string, number> = {};
  const attackers = Array.from({ length: hostile }, async (_, n) => {
    while (!ended.signal.aborted) {
      const [name, attack] =
        Object.entries(attacks)[Math.floor(random() * Object.keys(attacks).length)] ?? [];
      if (!name || !attack) continue;
      attacked[name] = (attacked[name] ?? 0) + 1;
      await attack({ url, token: tokens[honest + n] ?? '', signal: ended.signal });
    }
  });
  await callFor(minutes * 54_000, times.beside);
  ended.abort();
  await Promise.all(attackers);
  clearInterval(measured);
  say(`answers ${JSON.stringify(answers)}; attacks ${JSON.stringify(attacked)}`);
  for (const [when, took] of Object.entries(times)) {
    say(
      `small reports ${when}: ${took.length}, p50 ${percentile(took, 0.5)} ms, p99 ${percentile(took, 0.99)} ms`,
    );
  }
  say(`memory of the service each minute, MB: ${memory.join(' ')}`);
  const growth = (memory.at(-1) ?? 0) - (memory[Math.floor(memory.length / 5)] ?? 0);
  if (growth > 100) faults.push(`memory has grown by ${growth} MB`);
  const running = async () =>
    /adtally_reports_running (\d+)/.exec(await (await fetch(`${url}/metrics`)).text())?.[1];
  for (let second = 0; second < 10 && (await running()) !== '0'; second++) await delay(1_000);
  if ((await running()) !== '0') faults.push(`${await running()} places are lost`);
  for (const fault of faults.slice(0, 20)) say(fault);
  say(`${faults.length} faults`);
  process.exitCode = faults.length > 0 ? 1 : 0;
  await serve.kill('SIGTERM');
} finally {
  await lease.release();
  await rm(folder, { recursive: true, force: true });
}
