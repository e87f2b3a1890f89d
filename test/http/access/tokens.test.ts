import { expect, onTestFinished, test, vi } from 'vitest';
import { select } from '../../../clickhouse/client.ts';
import { Refreshed } from '../../../clickhouse/refreshed.ts';
import {
  createToken,
  hashToken,
  listTokens,
  newToken,
  purposeOf,
  revokeTokens,
} from '../../../src/accounts/tokens.ts';
import { AccountCache } from '../../../src/http/access/account-cache.ts';
import { KnownRows } from '../../../src/http/access/known-rows.ts';
import { useCountedStore } from '../../support/gate.ts';
import { statusWith, useService } from '../../support/service.ts';
import { useStore } from '../../support/store.ts';

const db = useStore();
const counted = useCountedStore(db);
const service = useService(counted);

const second = 1_000;

const statusOf = (token: string) => statusWith(service.url, token);

async function onlyTokenOf(account: string) {
  const [token, ...others] = await listTokens(db.store, { account });
  if (!token || others.length > 0) throw new Error(`${account} has ${others.length} tokens too many`);
  return token;
}

test('a token is 40 characters that nobody guesses, and a mistyped one is recognised without the store', () => {
  const tokens = Array.from({ length: 1_000 }, newToken);
  expect(new Set(tokens).size).toBe(tokens.length);
  for (const token of tokens) {
    expect(token).toMatch(/^adt_[0-9A-Za-z]{36}$/);
    expect(purposeOf(token)).toBe('report');
    for (let at = 0; at < token.length; at += 7) {
      const other = token[at] === 'x' ? 'y' : 'x';
      expect(purposeOf(`${token.slice(0, at)}${other}${token.slice(at + 1)}`)).toBe(undefined);
    }
    expect(purposeOf(`${token} `)).toBe(undefined);
    expect(purposeOf(token.slice(1))).toBe(undefined);
  }
});

test('a stolen copy of the store opens nothing: no table and no log holds a token', async () => {
  const token = await createToken(db.store, { account: 'secret', label: 'laptop' });
  expect(await statusOf(token)).toBe(200);
  expect(JSON.stringify(await listTokens(db.store))).not.toContain(token.slice(4));

  const tables = await select<{ name: string }>(
    db.store,
    `SELECT name FROM system.tables
     WHERE database = currentDatabase() AND engine NOT IN ('MaterializedView', 'Dictionary')`,
  );
  expect(tables.map(({ name }) => name)).toContain('tokens');
  for (const { name } of tables) {
    const holding = `SELECT count() AS rows FROM ${name}
                     WHERE position(toString(tuple(*)), concat({first:String}, {rest:String})) > 0`;
    // In two parts, so that this very statement does not put it into the log.
    const parts = { first: token.slice(4, 20), rest: token.slice(20) };
    expect(await select(db.store, holding, parts)).toEqual([{ rows: 0 }]);
  }
  await db.store.command({ query: 'SYSTEM FLUSH LOGS' });
  expect(
    await select(
      db.store,
      `SELECT count() AS rows FROM system.query_log
       WHERE position(toString(tuple(*)), concat({first:String}, {rest:String})) > 0`,
      { first: token.slice(4, 20), rest: token.slice(20) },
    ),
  ).toEqual([{ rows: 0 }]);
});

test('a token more is no work on those that there are, which may be one for each visit of years', async () => {
  let looked = 0;
  const row = (id: number, minute: string) => ({
    id: String(id),
    version: `2026-11-30 12:${minute}:00.000000`,
    get digest() {
      looked++;
      return String(id);
    },
  });
  const many = Array.from({ length: 1_000 }, (_, id) => row(id, '10'));
  const known = new KnownRows<(typeof many)[number]>(({ id }) => id);
  let asked: string | undefined;
  const follow = (state: string, rows: typeof many) =>
    known.follow(state, async (since) => {
      asked = since;
      return rows;
    });
  await follow('1000 499500', many);
  looked = 0;
  await follow('1001 500500', [row(1_000, '20')]);
  await follow('1001 500500', [row(1_001, '20')]);
  expect(looked).toBe(1);
  expect([asked, known.get('1000')?.id]).toEqual(['2026-11-30 12:09:00', '1000']);
  // What was deleted is known no more, and what has changed counts once.
  await follow('1 7', [row(7, '05')]);
  expect([known.get('7')?.id, known.get('8')]).toEqual(['7', undefined]);
  await follow('2 15', [row(7, '06'), row(8, '00')]);
  await follow('3 24', [row(9, '01')]);
  expect(asked).toBe('2026-11-30 12:05:00');
});

test('services know a token until it has ended for a week: those of years take no memory, and are in the list', async () => {
  const ago = (days: number) => new Date(Date.now() - days * 86_400 * second);
  const store = (id: string, ended: { expires?: Date; revoked?: Date }) => {
    const token = newToken();
    const at = (time?: Date) => (time ? time.getTime() : null);
    return db.store
      .command({
        query: `INSERT INTO tokens (id, account_id, hash, label, created_at, expires_at, revoked_at)
                SELECT {id:String}, 'visits', {hash:String}, '', fromUnixTimestamp64Milli({created:Int64}, 'UTC'),
                       fromUnixTimestamp64Milli({expires:Nullable(Int64)}, 'UTC'), fromUnixTimestamp64Milli({revoked:Nullable(Int64)}, 'UTC')`,
        query_params: {
          id,
          hash: hashToken(token),
          created: ago(30).getTime(),
          expires: at(ended.expires),
          revoked: at(ended.revoked),
        },
      })
      .then(() => token);
  };
  const tokens = [
    await store('long1', { expires: ago(9) }),
    await store('long2', { revoked: ago(9) }),
    await store('long3', { expires: ago(9), revoked: ago(1) }),
    await store('week1', { expires: ago(6) }),
    await store('week2', { revoked: ago(6), expires: ago(-1) }),
    await store('valid', { expires: ago(-1) }),
  ];
  const cache = new AccountCache({ store: db.store, onError: () => undefined });
  onTestFinished(() => cache.stop());
  await cache.start();
  const logins = () => Promise.all(tokens.map((token) => cache.login(token)));
  const unknown = { refused: 'unknown' };
  expect(await logins()).toMatchObject([
    ...[unknown, unknown, unknown],
    ...[{ refused: 'expired' }, { refused: 'revoked' }, { account: 'visits' }],
  ]);
  // A link says that it has ended also where its token is known no more.
  const link = { token: 'long1', expires: ago(9), isMadeBy: () => true };
  expect([await cache.follow(link), await cache.follow({ ...link, expires: ago(-1) })]).toEqual([
    { refused: 'expired_link' },
    unknown,
  ]);

  await db.store.command({
    query: `INSERT INTO tokens SELECT * REPLACE (now64(3) - INTERVAL 9 DAY AS expires_at, now64(6) AS version) FROM tokens FINAL
            WHERE id IN ('week1', 'valid')`,
  });
  expect(cache.tokenOf('valid')).toBeDefined();
  await expect
    .poll(async () => (await logins()).slice(-3), { timeout: 5 * second, interval: 100 })
    .toMatchObject([unknown, { refused: 'revoked' }, unknown]);
  expect(cache.tokenOf('valid')).toBe(undefined);
  const listed = await listTokens(db.store, { account: 'visits' });
  expect(listed.map(({ id }) => id).sort()).toEqual(['long1', 'long2', 'long3', 'valid', 'week1', 'week2']);
});

test('an account may have several tokens, each usable at once, and losing one leaves the others', async () => {
  const tokens: string[] = [];
  for (const label of ['laptop', 'nightly job', 'Zoë’s “script”\t']) {
    const token = await createToken(db.store, { account: 'several', label });
    expect(await statusOf(token)).toBe(200);
    tokens.push(token);
  }
  const listed = await listTokens(db.store, { account: 'several' });
  expect(listed.map(({ label }) => label)).toEqual(['laptop', 'nightly job', 'Zoë’s “script”\t']);
  expect(new Set(listed.map(({ id }) => id)).size).toBe(3);
  expect((await listTokens(db.store)).length).toBeGreaterThan(listed.length);

  await revokeTokens(db.store, { id: listed[1]?.id ?? '' });
  const wanted = [200, 401, 200];
  await expect
    .poll(() => Promise.all(tokens.map(statusOf)), { timeout: 5 * second, interval: 100 })
    .toEqual(wanted);
});

test('a revoked token stops working within 5 seconds and keeps the time of its revocation', async () => {
  const token = await createToken(db.store, { account: 'revoked', label: '' });
  expect(await statusOf(token)).toBe(200);
  const { id, revoked } = await onlyTokenOf('revoked');
  expect(revoked).toBeNull();
  expect(await revokeTokens(db.store, { id })).toEqual([id]);
  await expect.poll(() => statusOf(token), { timeout: 5 * second, interval: 100 }).toBe(401);

  const first = await onlyTokenOf('revoked');
  expect(Math.abs(Date.parse(first.revoked ?? '') - Date.now())).toBeLessThan(60 * second);
  expect(await revokeTokens(db.store, { id })).toEqual([id]);
  expect((await onlyTokenOf('revoked')).revoked).toBe(first.revoked);
  expect(await revokeTokens(db.store, { id: 'nonsense' })).toEqual([]);
});

test('a token ends when it expires', async () => {
  const expires = new Date(Date.now() + 3 * second);
  const token = await createToken(db.store, { account: 'expiring', label: '', expires });
  expect(await statusOf(token)).toBe(200);
  await expect.poll(() => statusOf(token), { timeout: 10 * second, interval: 100 }).toBe(401);
  expect(Date.now()).toBeGreaterThan(expires.getTime() - second);
  const stored = Date.parse((await onlyTokenOf('expiring')).expires ?? '');
  expect(Math.abs(stored - expires.getTime())).toBeLessThan(second);
});

test('reports do not wait for token queries: the store is asked by the clock, not by the request', async () => {
  const token = await service.token('busy');
  expect(await statusOf(token)).toBe(200);
  const asked = tokenQueries();
  const startedAt = Date.now();
  for (let n = 0; n < 60; n++) expect(await statusOf(token)).toBe(200);
  for (let n = 0; n < 60; n++) expect(await statusOf('adt_mistyped')).toBe(401);
  const queries = tokenQueries() - asked;
  expect(asked).toBeGreaterThan(0);
  expect(queries).toBeLessThanOrEqual((Date.now() - startedAt) / second + 2);
});

/** The service's own statements are in no log of ClickHouse. */
const tokenQueries = (): number => counted.sent('FROM tokens');

test('tokens that could not be refreshed for 5 seconds let nobody in', async () => {
  const token = await createToken(db.store, { account: 'stale', label: '' });
  let time = Date.now();
  const failures: unknown[] = [];
  const cache = new AccountCache({
    store: db.store,
    now: () => time,
    onError: (error) => failures.push(error),
  });
  await cache.start();
  expect(await statusOf(token)).toBe(200);
  await db.store.command({ query: 'RENAME TABLE tokens TO tokens_away' });
  try {
    expect(await statusOf(token)).toBe(200);
    time += 4 * second;
    expect(await cache.login(token)).toMatchObject({ account: 'stale' });
    time += second;
    await expect(cache.login(token)).rejects.toThrow();
    await expect.poll(() => statusOf(token), { timeout: 6 * second, interval: 100 }).toBe(500);
    expect(failures.length).toBeGreaterThan(0);
  } finally {
    cache.stop();
    await db.store.command({ query: 'RENAME TABLE tokens_away TO tokens' });
  }
  // What is asked first may share a look that began while the table was away.
  await Promise.allSettled([cache.login(token), statusOf(token)]);
  expect(await cache.login(token)).toMatchObject({ account: 'stale' });
  expect(await statusOf(token)).toBe(200);
});

test('what is in memory gets old also where the clock of the machine is set back', async () => {
  vi.useFakeTimers({ toFake: ['Date'] });
  const copy = new Refreshed(async () => 'read', { everyMs: 60 * second, maxAgeMs: 0, onError: () => {} });
  try {
    await copy.start();
    const readBy = performance.now();
    while (performance.now() === readBy);
    vi.setSystemTime(Date.now() - 3_600 * second);
    expect(copy.isCurrent).toBe(false);
  } finally {
    copy.stop();
    vi.useRealTimers();
  }
});

test('a service that starts while the tokens cannot be read does not serve', async () => {
  await db.store.command({ query: 'RENAME TABLE tokens TO tokens_away' });
  const cache = new AccountCache({ store: db.store, onError: () => undefined });
  try {
    await expect(cache.start()).rejects.toThrow();
  } finally {
    cache.stop();
    await db.store.command({ query: 'RENAME TABLE tokens_away TO tokens' });
  }
});
