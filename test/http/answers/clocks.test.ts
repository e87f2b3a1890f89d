import { expect, test } from 'vitest';
import { requestLimits } from '../../../src/accounts/own-settings.ts';
import { createToken, hashToken, listTokens, newToken, revokeTokens } from '../../../src/accounts/tokens.ts';
import { useCommandRunners } from '../../support/command-runners.ts';
import { heldAt } from '../../support/held.ts';
import { environmentOf, useCommands } from '../../support/process.ts';
import { statusWith, useService } from '../../support/service.ts';
import { useStore } from '../../support/store.ts';

const db = useStore();
const service = useService(db);
const commands = useCommands();
const runCommand = useCommandRunners();
const within5s = { timeout: 5_000, interval: 100 };

const adtally = (args: readonly string[]) => runCommand(['token', ...args], environmentOf(db.address));

const statusOf = (token: string) => statusWith(service.url, token);

/** A token as a node would have stored it whose clock is ahead. */
async function tokenFrom(ahead: string, id: string, account = 'ahead'): Promise<string> {
  const token = newToken();
  await db.store.command({
    query: `INSERT INTO tokens (id, account_id, hash, label, created_at, version)
            SELECT {id:String}, {account:String}, {hash:String}, '', now64(3), ${ahead}`,
    query_params: { id, account, hash: hashToken(token) },
  });
  return token;
}

test('after a row from a clock ten minutes ahead every token, also that one, is known and revoked within 5 s', async () => {
  const before = await createToken(db.store, { account: 'before', label: '' });
  const ahead = await tokenFrom('now64(6) + INTERVAL 10 MINUTE', 'ahead');
  await expect.poll(() => statusOf(ahead), within5s).toBe(200);
  expect(await statusOf(before)).toBe(200);
  const after = await createToken(db.store, { account: 'after', label: '' });
  expect(await statusOf(after)).toBe(200);

  for (const account of ['before', 'ahead', 'after'])
    expect(await revokeTokens(db.store, { account })).toHaveLength(1);
  const statuses = () => Promise.all([before, ahead, after].map(statusOf));
  await expect.poll(statuses, within5s).toEqual([401, 401, 401]);
  expect((await listTokens(db.store)).filter(({ revoked }) => revoked === null)).toEqual([]);
});

test('a token that is deleted from the table is refused within 5 s', async () => {
  const token = await createToken(db.store, { account: 'deleted', label: '' });
  expect(await statusOf(token)).toBe(200);
  await db.store.command({ query: "DELETE FROM tokens WHERE account_id = 'deleted'" });
  await expect.poll(() => statusOf(token), within5s).toBe(401);
});

test('a revocation that was undone at once, by whatever else writes tokens, fails', async () => {
  const token = await tokenFrom("toDateTime64('2299-12-31 23:59:59.999999', 6, 'UTC')", 'last', 'last');
  const held = heldAt(db.store, /FINAL\s+WHERE account_id = .* AND revoked_at IS NULL/);
  const revoking = revokeTokens(held.store, { account: 'last' });
  await held.reached;
  await db.store.command({
    query: `INSERT INTO tokens (id, account_id, hash, label, created_at, version)
            SELECT id, account_id, hash, label, created_at, version + INTERVAL 1 SECOND FROM tokens FINAL WHERE id = 'last'`,
  });
  held.release();
  await expect(revoking).rejects.toThrow(/^not revoked: last;/);
  expect(await statusOf(token)).toBe(200);
  expect(await revokeTokens(db.store, { account: 'last' })).toEqual(['last']);
  await expect.poll(() => statusOf(token), within5s).toBe(401);
});

test('a limit that was set by a clock ahead can be changed, and a change that was undone at once fails', async () => {
  const insert = (account: string, version: string) =>
    db.store.command({
      query: `INSERT INTO account_limits (account_id, requests, version) SELECT '${account}', 7, ${version}`,
    });
  await insert('limited', 'now64(6) + INTERVAL 10 MINUTE');
  await requestLimits.set(db.store, 'limited', 9);
  await requestLimits.set(db.store, 'other', 3);
  expect(await requestLimits.list(db.store)).toMatchObject([
    { account: 'limited', value: 9 },
    { account: 'other', value: 3 },
  ]);
  const policy = async (account: string) => {
    const answer = await service.post('/v1/campaigns', account, {});
    await answer.arrayBuffer();
    return answer.headers.get('ratelimit-policy');
  };
  await expect.poll(() => policy('limited'), within5s).toMatch(/q=9;/);
  await expect.poll(() => policy('other'), within5s).toMatch(/q=3;/);

  const held = heldAt(db.store, /IS DISTINCT FROM/);
  const setting = requestLimits.set(held.store, 'limited', null);
  await held.reached;
  await insert('limited', 'now64(6) + INTERVAL 20 MINUTE');
  held.release();
  await expect(setting).rejects.toThrow(/^what is set for limited was not changed/);
});

test('the command revokes by id, by the token itself, from standard input, and for a whole account', async () => {
  const make = () => createToken(db.store, { account: 'leaky', label: '' });
  const [byText, byInput, ...rest] = [await make(), await make(), await make(), await make()];
  expect(await adtally(['revoke', byText])).toMatchObject({
    code: 0,
    stderr: expect.stringMatching(/^token \w+ is revoked\n$/),
  });
  const fromInput = commands.run(['token', 'revoke', '-'], environmentOf(db.address), `${byInput}\n`);
  expect(await fromInput).toMatchObject({ code: 0 });
  const valid = async () =>
    (await listTokens(db.store, { account: 'leaky' }))
      .filter(({ revoked }) => !revoked)
      .map(({ hash }) => hash);
  expect((await valid()).sort()).toEqual(rest.map(hashToken).sort());
  const all = await adtally(['revoke', '--account', 'leaky']);
  expect(all).toMatchObject({ code: 0 });
  expect(all.stderr.trim().split('\n')).toHaveLength(4);
  expect(await valid()).toEqual([]);

  expect(await adtally(['revoke', newToken()])).toMatchObject({ code: 2 });
  expect(await adtally(['revoke', '--account', 'nobody'])).toMatchObject({ code: 2 });
  for (const wrong of [['revoke'], ['revoke', 'x', '--account', 'a'], ['revoke', 'adt_mistyped']]) {
    expect(await adtally(wrong)).toMatchObject({ code: 2 });
  }
});

test('a token that a restored backup has revived is revoked again', async () => {
  const token = await createToken(db.store, { account: 'restored', label: '' });
  const backup = `File('tokens-${db.address.database}')`;
  await db.store.command({ query: `BACKUP TABLE tokens TO ${backup}` });
  await revokeTokens(db.store, { account: 'restored' });
  await expect.poll(() => statusOf(token), within5s).toBe(401);
  await db.store.command({ query: 'DROP TABLE tokens SYNC' });
  await db.store.command({ query: `RESTORE TABLE tokens FROM ${backup}` });
  await expect.poll(() => statusOf(token), { timeout: 10_000, interval: 100 }).toBe(200);
  const listed = await adtally(['list', 'restored', '--json']);
  expect(JSON.parse(listed.stdout)).toMatchObject([{ account: 'restored', revoked: null }]);

  expect(await adtally(['revoke', token])).toMatchObject({ code: 0 });
  await expect.poll(() => statusOf(token), within5s).toBe(401);
});
