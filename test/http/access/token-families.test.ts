import { beforeAll, expect, test, vi } from 'vitest';
import { createToken, listTokens, revokeTokens } from '../../../src/accounts/tokens.ts';
import { openLog } from '../../../src/observe/log.ts';
import { event, load } from '../../support/events.ts';
import { paths } from '../../support/oracle.ts';
import { environmentOf, postJson, useCommands } from '../../support/process.ts';
import { useService } from '../../support/service.ts';
import { useStore } from '../../support/store.ts';

const lines: string[] = [];
const log = openLog('info', { write: (line) => void lines.push(line) });
const db = useStore();
const service = useService(db, {}, log);
const commands = useCommands();
const body = '{"start_time":"2026-03-01","end_time":"2026-03-31"}';
const account = '42';
const noPublisher = { publisher_id: '', ad_unit_id: '', site_id: '' };
const noAdvertiser = { advertiser_id: '', campaign_id: '', creative_id: '' };

/** Two companies: the ids of advertisers and of publishers come from two sequences. */
beforeAll(() =>
  load(db.store, [
    event({ advertiser_id: account, campaign_id: 'campaign-of-42', ...noPublisher }),
    event({ publisher_id: account, ad_unit_id: 'ad-unit-of-42', ...noAdvertiser }),
  ]),
);

async function ask(path: string, token: string) {
  const answer = await postJson(`${service.url}${path}`, token, body);
  return { status: answer.status, headers: answer.headers, text: await answer.text() };
}

const familyOf = (path: string) => (path.startsWith('/v1/campaigns') ? 'campaigns' : 'ad_units');

test.each(['campaigns', 'ad_units'])('a token for %s opens these reports and no others', async (family) => {
  const token = await createToken(db.store, { account, label: '', family });
  for (const path of paths) {
    const { status, text } = await ask(path, token);
    expect([path, status]).toEqual([path, familyOf(path) === family ? 200 : 401]);
    expect(text.includes('-of-42')).toBe(status === 200);
  }
});

test('its holder is told what is wrong, and so is the operator', async () => {
  const token = await createToken(db.store, { account, label: '', family: 'ad_units' });
  const { headers, text } = await ask('/v1/campaigns', token);
  expect(headers.get('www-authenticate')).toBe('Bearer realm="adtally", error="invalid_token"');
  expect(JSON.parse(text)).toMatchObject({
    code: 'unauthorized',
    detail: 'this login token does not open the reports of this family',
  });
  const request = headers.get('x-request-id');
  const line = await vi.waitUntil(() =>
    lines.map((each) => JSON.parse(each)).find((each) => each.request === request),
  );
  expect(line).toMatchObject({
    status: 401,
    refused: 'other_family',
    token: expect.stringMatching(/^\w{10}$/),
  });
  expect(line).not.toHaveProperty('account');
});

test('a token of no family opens both, as before', async () => {
  const token = await createToken(db.store, { account, label: '' });
  for (const path of ['/v1/campaigns', '/v1/ad_units']) expect((await ask(path, token)).status).toBe(200);
});

test('a token that is revoked is still one of its family', async () => {
  await createToken(db.store, { account: 'revoked', label: '', family: 'campaigns' });
  await revokeTokens(db.store, { account: 'revoked' });
  const [token] = await listTokens(db.store, { account: 'revoked' });
  expect(token).toMatchObject({ family: 'campaigns', revoked: expect.any(String) });
});

test('the command makes and lists them, and says that a token without end has none', async () => {
  const adtally = (...args: string[]) => commands.run(['token', ...args], environmentOf(db.address));
  const made = await adtally('create', 'acme', '--family', 'campaigns');
  expect(made.code).toBe(0);
  expect(made.stderr).toMatch(/^this token never expires/m);
  expect((await ask('/v1/campaigns', made.stdout.trim())).status).toBe(200);
  expect((await ask('/v1/ad_units', made.stdout.trim())).status).toBe(401);
  expect((await adtally('list', 'acme')).stdout).toMatch(/\tcampaigns\treport\n$/);
  expect((await adtally('create', 'acme', '--family', 'sites')).code).toBe(2);
  expect((await adtally('create', 'acme', '--expires', '2099-01-01')).stderr).toBe('');
});
