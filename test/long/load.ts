import { createHash, randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { connect } from '../../clickhouse/client.ts';
import { acquireEmbedded } from '../../clickhouse/embedded/embedded.ts';
import { migrate } from '../../clickhouse/migrate/migrate.ts';
import { createToken } from '../../src/accounts/tokens.ts';
import { startOf } from '../support/compiled.ts';
import { environmentOf, listening, startProcess } from '../support/process.ts';

/**
 * 64 callers on one real service, at about ten times what their accounts are allowed, small and large reports
 * mixed. Fails on a 5xx, a wrong row, or a limit that is not exact. `--seconds` (30). The callers share the
 * machine with the service and its store: the ratio is that of this machine.
 */
const callers = 64;
const accounts = 8;
const limit = 20;
const windowSeconds = 10;
const sizes = {
  small: { path: '/v1/campaigns', body: '{"start_time":"2026-01-01","end_time":"2026-01-31"}' },
  large: {
    path: '/v1/campaigns/breakdowns/device_creative_date',
    body: '{"start_time":"2026-01-01","end_time":"2026-12-31"}',
  },
};
type Size = keyof typeof sizes;

interface Answer {
  readonly status: number;
  readonly code: string;
  readonly ms: number;
  /** Requests that the account has left, as the answer says. */
  readonly left: number;
  /** Of the rows; absent for an answer that is no report. */
  readonly sum: string | undefined;
}

async function ask(url: string, token: string, size: Size): Promise<Answer> {
  const { path, body } = sizes[size];
  const startedAt = performance.now();
  const response = await fetch(`${url}${path}`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${token}`,
      'content-type': 'application/json',
      'accept-encoding': 'identity',
    },
    body,
  });
  const { status } = response;
  const left = Number(/;r=(\d+)/.exec(response.headers.get('ratelimit') ?? '')?.[1]);
  if (status !== 200) {
    const { code } = JSON.parse(await response.text());
    return { status, code: String(code), ms: performance.now() - startedAt, left, sum: undefined };
  }
  // Piece by piece: a caller that holds up the others would measure itself.
  const hash = createHash('sha256');
  let first = true;
  for await (const piece of response.body ?? []) {
    if (first) hash.update(withoutTime(Buffer.from(piece)), 'latin1');
    else hash.update(piece);
    first = false;
  }
  return { status, code: '', ms: performance.now() - startedAt, left, sum: hash.digest('hex') };
}

/** The first piece of a report without the time of the request, which differs from answer to answer. */
function withoutTime(piece: Buffer): string {
  return piece.toString('latin1').replace(/"last_update_time":"[^"]*"/, '');
}

function memoryMb(pid: number): number {
  return Number(/^VmRSS:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) / 1024;
}

const percentile = (times: readonly number[], part: number): number =>
  times.toSorted((a, b) => a - b)[Math.min(times.length - 1, Math.floor(times.length * part))] ?? Number.NaN;

const { values } = parseArgs({ options: { seconds: { type: 'string' } } });
const seconds = Number(values.seconds ?? 30);
const folder = await mkdtemp(join(tmpdir(), 'adtally-load-'));
const lease = await acquireEmbedded(folder);
const address = { ...lease.address, database: `load_${randomBytes(4).toString('hex')}` };
try {
  await migrate(address);
  const store = connect(address);
  for (const [table, extra] of [
    ['campaigns_date', ''],
    ['campaigns_device_creative_date', ', device, creative_id'],
  ]) {
    await store.command({
      query: `INSERT INTO ${table} (account_id, day, campaign_id, impressions${extra})
              SELECT concat('account-', toString(number % ${accounts})), toDate('2026-01-01') + intDiv(number, 1000) % 300,
                     concat('campaign-', toString(number % 97)), number${extra && ", 'mobile', toString(number)"}
              FROM numbers(${accounts * 30_000})`,
    });
  }
  const names = Array.from({ length: accounts }, (_, n) => `account-${n}`);
  const tokens = await Promise.all(names.map((account) => createToken(store, { account, label: '' })));
  await store.close();
  const env = { ...environmentOf(address), PORT: '0' };
  const start = (limits: Record<string, string>) =>
    startProcess(process.execPath, [...startOf('src/cli'), 'serve'], { ...env, ...limits });

  // Alone, without a limit: what is right, and how fast it is.
  const calm = start({ RATE_LIMIT_REQUESTS: '1000000' });
  const calmUrl = await listening(calm);
  const right = new Map<string, string | undefined>();
  for (const [n, token] of tokens.entries()) {
    for (const size of ['small', 'large'] as const)
      right.set(`${n} ${size}`, (await ask(calmUrl, token, size)).sum);
  }
  const alone: number[] = [];
  for (let n = 0; n < 200; n++) alone.push((await ask(calmUrl, tokens[n % accounts] ?? '', 'small')).ms);
  await calm.kill('SIGTERM');

  // Every account asks about ten times as often as it may, so that each window begins with a burst.
  const pace = (windowSeconds * 1000 * callers) / (10 * limit * accounts);
  const serve = start({ RATE_LIMIT_REQUESTS: `${limit}`, RATE_LIMIT_WINDOW_SECONDS: `${windowSeconds}` });
  const url = await listening(serve);
  const memory = [memoryMb(serve.pid)];
  const sampling = setInterval(() => memory.push(memoryMb(serve.pid)), 1_000);
  const counts: Record<string, number> = {};
  const passed = names.map(() => Array<number>(limit).fill(0));
  const refused = names.map(() => 0);
  const loaded: number[] = [];
  const faults: string[] = [];
  const until = performance.now() + seconds * 1000;
  const caller = async (n: number) => {
    const account = n % accounts;
    for (let turn = 0; performance.now() < until; turn++) {
      const next = performance.now() + pace;
      const size: Size = (turn + n) % 4 === 0 ? 'large' : 'small';
      const { status, code, ms, left, sum } = await ask(url, tokens[account] ?? '', size);
      const kind = `${size} ${status} ${code}`;
      counts[kind] = (counts[kind] ?? 0) + 1;
      const byLeft = passed[account];
      if (code === 'rate_limited') refused[account] = (refused[account] ?? 0) + 1;
      else if (byLeft) byLeft[left] = (byLeft[left] ?? 0) + 1;
      if (status === 200 && size === 'small') loaded.push(ms);
      if (status >= 500) faults.push(kind);
      if (status === 200 && sum !== right.get(`${account} ${size}`))
        faults.push(`wrong rows: ${account} ${size}`);
      await new Promise((resolve) => setTimeout(resolve, Math.max(0, next - performance.now())));
    }
  };
  await Promise.all(Array.from({ length: callers }, (_, n) => caller(n)));
  clearInterval(sampling);
  // In a window each number of requests left is said at most once and none is refused before it is used up.
  for (const [n, byLeft] of passed.entries()) {
    const tooMany = byLeft.length > limit || byLeft.some((times, at) => times > (byLeft[at + 1] ?? times));
    if (tooMany) faults.push(`account ${n}: more than ${limit} passed in a window: ${byLeft}`);
    if (refused[n] && !byLeft[0]) faults.push(`account ${n}: refused before ${limit} had passed`);
  }
  const p99 = { alone: percentile(alone, 0.99), loaded: percentile(loaded, 0.99) };
  console.table(counts);
  console.table({
    'small p50 alone, ms': percentile(alone, 0.5),
    'small p50 under load, ms': percentile(loaded, 0.5),
    'small p99 alone, ms': p99.alone,
    'small p99 under load, ms': p99.loaded,
    'p99 ratio': p99.loaded / p99.alone,
    'windows used up': passed.reduce((sum, byLeft) => sum + (byLeft[0] ?? 0), 0),
  });
  process.stdout.write(
    `memory, MB, every ${windowSeconds} s: ${memory.filter((_, n) => n % windowSeconds === 0).map(Math.round)}, at most ${Math.round(Math.max(...memory))}\n`,
  );
  for (const fault of faults.slice(0, 20)) process.stdout.write(`${fault}\n`);
  process.exitCode = faults.length > 0 ? 1 : 0;
  await serve.kill('SIGTERM');
} finally {
  await lease.release();
  await rm(folder, { recursive: true, force: true });
}
