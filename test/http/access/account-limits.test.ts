import { randomBytes } from 'node:crypto';
import { describe, expect, inject, test } from 'vitest';
import { requestLimits } from '../../../src/accounts/own-settings.ts';
import { createToken, listTokens } from '../../../src/accounts/tokens.ts';
import { AccountCache } from '../../../src/http/access/account-cache.ts';
import { useCommandRunners } from '../../support/command-runners.ts';
import { environmentOf } from '../../support/process.ts';
import { useService } from '../../support/service.ts';
import { useStore } from '../../support/store.ts';

const db = useStore();
const runCommand = useCommandRunners();
const range = { start_time: '2026-03-01', end_time: '2026-03-31' };

describe.each([['in memory'], ['in Redis']])('an account with a limit of its own, counted %s', (where) => {
  const env = {
    RATE_LIMIT_REQUESTS: '3',
    RATE_LIMIT_WINDOW_SECONDS: '600',
    REDIS_URL: where === 'in Redis' ? inject('redisUrl') : '',
  };
  const [first, second] = [useService(db, env), useService(db, env)];
  const named = (name: string) => `${name}-${randomBytes(6).toString('hex')}`;
  const policy = async (service: typeof first, account: string) => {
    const response = await service.post('/v1/campaigns', account, range);
    await response.arrayBuffer();
    return {
      status: response.status,
      policy: response.headers.get('ratelimit-policy'),
      left: Number(/;r=(\d+);/.exec(response.headers.get('ratelimit') ?? '')?.[1]),
    };
  };

  test('has exactly so many requests, is told so, and leaves the others theirs', async () => {
    const [more, fewer, usual] = [named('more'), named('fewer'), named('usual')];
    await requestLimits.set(db.store, more, 7);
    await requestLimits.set(db.store, fewer, 1);
    for (const [account, limit] of [
      [more, 7],
      [fewer, 1],
      [usual, 3],
    ] as const) {
      const answers = [];
      for (let n = 0; n < 9; n++) answers.push(await policy(first, account));
      expect(answers).toEqual(
        Array.from({ length: 9 }, (_, n) => ({
          status: n < limit ? 200 : 429,
          policy: `"account";q=${limit};w=600`,
          left: Math.max(0, limit - n - 1),
        })),
      );
    }
  });

  test('has another one within 5 seconds, without losing count, and the usual one again', async () => {
    const account = named('changing');
    expect(await policy(first, account)).toMatchObject({ status: 200, left: 2 });
    await requestLimits.set(db.store, account, 50);
    const now = () => policy(first, account);
    await expect
      .poll(now, { timeout: 5_000, interval: 500 })
      .toMatchObject({ policy: '"account";q=50;w=600' });
    const { left } = await now();
    expect(left).toBeLessThan(48);
    expect(await now()).toMatchObject({ status: 200, left: left - 1 });
    await requestLimits.set(db.store, account, null);
    await expect
      .poll(now, { timeout: 5_000, interval: 500 })
      .toMatchObject({ policy: '"account";q=3;w=600' });
    expect(await now()).toMatchObject({ status: 429, left: 0 });
  });

  test('has it once where services share a Redis, and in each of them where they do not', async () => {
    const account = named('shared');
    await requestLimits.set(db.store, account, 5);
    const statuses: number[] = [];
    for (let n = 0; n < 10; n++) {
      const answers = await Promise.all([policy(first, account), policy(second, account)]);
      statuses.push(...answers.map(({ status }) => status));
    }
    const allowed = statuses.filter((status) => status === 200).length;
    expect(allowed).toBe(where === 'in Redis' ? 5 : 10);
  });
});

test('the command sets, lists and takes away limits, and says what is wrong with an argument', async () => {
  const limit = (...args: string[]) => runCommand(['limit', ...args], environmentOf(db.address));
  expect(await limit('set', 'by-command', '500')).toMatchObject({ code: 0, stdout: '' });
  expect(await limit('list', 'by-command')).toMatchObject({ code: 0, stdout: 'by-command\t500\n' });
  expect(JSON.parse((await limit('list', '--json')).stdout)).toContainEqual({
    account: 'by-command',
    requests: 500,
  });
  expect(await limit('set', 'by-command', 'null')).toMatchObject({ code: 0 });
  expect(await limit('list', 'by-command', '--json')).toMatchObject({ code: 0, stdout: '[]\n' });
  const wrong = [['5'], ['a', '0'], ['a', '5', 'null'], ['a', 'none'], ['', '5'], []];
  for (const args of wrong) {
    expect(await limit('set', ...args)).toMatchObject({
      code: 2,
      stdout: '',
      stderr: expect.stringMatching(/^error: /),
    });
  }
  await expect(requestLimits.set(db.store, 'none', 0)).rejects.toThrow(/violated/);
});

test('a token is known by its id also where the limits could not be read with it', async () => {
  const token = await createToken(db.store, { account: 'half', label: '' });
  await requestLimits.set(db.store, 'half', 7);
  const [stored] = await listTokens(db.store, { account: 'half' });
  const cache = new AccountCache({ store: db.store, onError: () => undefined });
  await db.store.command({ query: 'RENAME TABLE account_limits TO away' });
  try {
    await expect(cache.start())
      .rejects.toThrow('account_limits')
      .finally(() => db.store.command({ query: 'RENAME TABLE away TO account_limits' }));
    expect(await cache.login(token)).toMatchObject({ account: 'half' });
    expect(cache.tokenOf(stored?.id ?? '')?.hash).toBe(stored?.hash);
  } finally {
    cache.stop();
  }
});
