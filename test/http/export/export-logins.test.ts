import pino from 'pino';
import { beforeAll, describe, expect, test, vi } from 'vitest';
import { createToken, listTokens, revokeTokens } from '../../../src/accounts/tokens.ts';
import { event, load } from '../../support/events.ts';
import { environmentOf, postJson, useCommands } from '../../support/process.ts';
import { useService } from '../../support/service.ts';
import { useStore } from '../../support/store.ts';

const db = useStore();
const commands = useCommands();
const secret = { LINK_SECRET: 'of these tests, which is long enough' };
const lines: string[] = [];
const log = pino({ level: 'info' }, { write: (line) => void lines.push(line) });
const service = useService(db, secret, log);
const elsewhere = useService(db, { LINK_SECRET: 'of another installation, as long as that' });

const march = { start_time: '2026-03-01', end_time: '2026-03-31' };
const csv = `/v1/export/campaigns/device_date.csv?${new URLSearchParams(march)}`;

beforeAll(() => load(db.store, [event({ advertiser_id: 'linking', campaign_id: 'shown' })]));

describe('a token as the password', () => {
  const basic = (text: string) => ({ authorization: `Basic ${Buffer.from(text).toString('base64')}` });

  test('opens exports, and no endpoint of the contract', async () => {
    const headers = basic(`anybody:${await service.token('both')}`);
    expect((await fetch(`${service.url}${csv}`, { headers })).status).toBe(200);
    expect((await service.post('/v1/campaigns', 'both', march, headers)).status).toBe(401);
  });

  test.each([
    ['a wrong one', { authorization: 'Basic YTpi' }],
    ['none', { authorization: '' }],
    ['no base64', { authorization: 'Basic ä%' }],
    ['a text that is no token', { authorization: 'Bearer adt_x' }],
  ])('%s is asked for again, in both ways', async (_, { authorization }) => {
    const headers: Record<string, string> = /ä/.test(authorization)
      ? { authorization: 'Basic %' }
      : { authorization };
    const response = await fetch(`${service.url}${csv}`, { headers });
    expect(response.status).toBe(401);
    const asked = response.headers.get('www-authenticate');
    expect(asked).toMatch(/^Bearer realm="adtally".*, Basic realm="adtally", charset="UTF-8"$/);
    expect(JSON.parse(await response.text()).code).toBe('unauthorized');
  });
});

describe('a link', () => {
  const post = (path: string, token: string, fields: object) =>
    postJson(`${service.url}${path}`, token, { ...march, ...fields });
  const linkOf = async (fields: object = {}, token = service.token('linking')) => {
    const made = await post('/v1/links/campaigns.csv', await token, fields);
    expect(made.status).toBe(200);
    return JSON.parse(await made.text()).result as { link: string; expires: string };
  };
  const follow = (link: string, init: RequestInit = {}, from = service) => fetch(`${from.url}${link}`, init);
  const statusOf = async (link: string, init: RequestInit = {}, from = service) => {
    const response = await follow(link, init, from);
    await response.text();
    return response.status;
  };
  const detailOf = async (link: string) => JSON.parse(await (await follow(link)).text()).detail;

  test('opens the one report without a token, by GET and HEAD, for a week', async () => {
    const { link, expires } = await linkOf();
    expect(Date.parse(expires) - Date.now()).toBeGreaterThan(6.9 * 86_400_000);
    expect(await (await follow(link)).text()).toContain('"shown"');
    expect(await statusOf(link, { method: 'HEAD' })).toBe(200);
    expect(await statusOf(link, { method: 'POST' })).toBe(405);
  });

  test('is not made where it would be too long to be opened', async () => {
    const campaigns = (count: number) => ({
      filters: { campaign: Array.from({ length: count }, (_, n) => `Campaign ${1_000 + n}`) },
    });
    const { link } = await linkOf(campaigns(200));
    expect(await statusOf(link)).toBe(200);
    const refused = await post('/v1/links/campaigns.csv', await service.token('linking'), campaigns(300));
    expect([refused.status, JSON.parse(await refused.text())]).toMatchObject([
      400,
      { code: 'invalid_request', detail: expect.stringContaining('too many filters') },
    ]);
  });

  test('opens nothing else: neither another report, range, token nor time', async () => {
    const { link } = await linkOf();
    const [, proof = ''] = /link=(.*)$/.exec(link) ?? [];
    const [id, until, signature = ''] = proof.split('.');
    const changed = [
      link.replace('campaigns.csv', 'campaigns.json'),
      link.replace('campaigns.csv', 'campaigns/device.csv'),
      link.replace('campaigns.csv', 'ad_units.csv'),
      link.replace('03-31', '03-30'),
      `${link}&limit=1`,
      link.replace('start_time', 'limit=1&start_time'),
      `${link}&link=${proof}`,
      link.replace(proof, `${id}.${Number(until) + 1}.${signature}`),
      link.replace(proof, `${'0'.repeat(10)}.${until}.${signature}`),
      link.replace(proof, `${id}.${until}.${'A'.repeat(43)}`),
      link.replace(proof, ''),
      link.replace(proof, 'x'),
    ];
    for (const address of changed) expect([address, await statusOf(address)]).toEqual([address, 401]);
    expect(await detailOf(`${link}&limit=1`)).toMatch(/^this link is not whole, or its address was changed/);
    expect(await statusOf(link, {}, elsewhere)).toBe(401);
    const headers = { authorization: `Bearer ${await service.token('linking')}` };
    expect(await statusOf(link.replace('03-31', '03-30'), { headers })).toBe(401);
  });

  test('ends at its time, and with the token that made it', async () => {
    const soon = new Date(Date.now() + 2_500).toISOString();
    const { link: short } = await linkOf({ expires: soon });
    const token = await createToken(db.store, { account: 'linking', label: 'to be revoked' });
    const { link } = await linkOf({}, Promise.resolve(token));
    expect(await statusOf(link)).toBe(200);
    await vi.waitUntil(async () => (await statusOf(short)) === 401, { timeout: 20_000 });
    expect(await detailOf(short)).toBe('this link has ended: make a new one');
    await revokeTokens(db.store, { token });
    await vi.waitUntil(async () => (await statusOf(link)) === 401, { timeout: 20_000 });
    expect(await statusOf((await linkOf()).link)).toBe(200);
  });

  test('says the end of its token where that comes first', async () => {
    const expires = new Date(Date.now() + 3_600_000);
    const token = await createToken(db.store, { account: 'linking', label: '', expires });
    for (const asked of [{}, { expires: new Date(Date.now() + 7_200_000).toISOString() }]) {
      const { link, expires: told } = await linkOf(asked, Promise.resolve(token));
      expect(told).toBe(`${expires.toISOString().slice(0, 19)}Z`);
      expect(await statusOf(link)).toBe(200);
    }
  });

  test('holds for a week where its end is null, as if there were none', async () => {
    const { expires } = await linkOf({ expires: null });
    expect(Date.parse(expires) - Date.now()).toBeGreaterThan(6.9 * 86_400_000);
  });

  test('is not made where its end is written in a field that looks mistyped', async () => {
    const response = await post('/v1/links/campaigns.csv', await service.token('linking'), {
      Expires: '2099-01-01',
    });
    expect(response.status).toBe(400);
    expect(JSON.parse(await response.text())).toMatchObject({
      field: 'Expires',
      detail: expect.stringContaining('did you mean expires?'),
    });
  });

  test('is not made for a time that is past or far, for another family, or by a link', async () => {
    const token = await service.token('linking');
    for (const expires of ['2020-01-01', '2099-01-01', 'soon', 7]) {
      const response = await post('/v1/links/campaigns.csv', token, { expires });
      expect([expires, response.status]).toEqual([expires, 400]);
      expect(JSON.parse(await response.text()).field).toBe('expires');
    }
    const ofCampaigns = await createToken(db.store, { account: 'linking', label: '', family: 'campaigns' });
    expect((await post('/v1/links/ad_units.csv', ofCampaigns, {})).status).toBe(401);
    expect((await post('/v1/links/campaigns/device.csv', ofCampaigns, {})).status).toBe(200);
    const { link } = await linkOf();
    const headers = { 'content-type': 'application/json' };
    const body = JSON.stringify(march);
    const again = link.replace('/v1/export/', '/v1/links/');
    expect(await statusOf(again, { method: 'POST', headers, body })).toBe(401);
  });

  test('is in no log; the id of its token is', async () => {
    const { link } = await linkOf();
    await statusOf(link);
    const [token] = await listTokens(db.store, { account: 'linking' });
    await vi.waitUntil(() => lines.filter((line) => line.includes('/v1/export/campaigns.csv')).length > 0);
    const all = lines.join('');
    expect(all).toContain(token?.id);
    expect(all).not.toContain('link=');
    expect(all).not.toContain(/[.]([\w-]{43})$/.exec(link)?.[1]);
  });

  test('is also made by the operator, and not without LINK_SECRET', async () => {
    await service.token('linking');
    const [token] = await listTokens(db.store, { account: 'linking' });
    const address = `/v1/export/campaigns.csv?${new URLSearchParams(march)}`;
    const make = (arguments_: readonly string[], env: Record<string, string>) =>
      commands.run(['token', 'link', ...arguments_], { ...environmentOf(db.address), ...env });
    const { stdout, code } = await make([token?.id ?? '', address], secret);
    expect(code).toBe(0);
    expect(await statusOf(stdout.trim())).toBe(200);
    await createToken(db.store, { account: 'linking', label: '', family: 'campaigns' });
    const side = (await listTokens(db.store, { account: 'linking' })).find(({ family }) => family !== null);
    const absolute = await make([side?.id ?? '', `https://ads.example.com${address}`], secret);
    expect(absolute).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(/^https:\/\/ads\.example\.com\/v1/),
    });
    const otherSide = address.replace('campaigns', 'ad_units');
    expect(await make([side?.id ?? '', otherSide], secret)).toMatchObject({ code: 2, stdout: '' });
    expect((await make([side?.id ?? '', 'http://['], secret)).code).toBe(2);
    expect(await make([token?.id ?? '', address], {})).toMatchObject({ code: 2, stdout: '' });
    const mistyped = await make([token?.id ?? '', `${address}&devise=mobile`], secret);
    expect(mistyped).toMatchObject({ code: 2, stdout: '', stderr: expect.stringContaining('devise') });
  });
});
