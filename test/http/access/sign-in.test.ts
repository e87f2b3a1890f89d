import pino from 'pino';
import { afterEach, beforeAll, describe, expect, test, vi } from 'vitest';
import { event, load } from '../../support/events.ts';
import { clientSecret, useOpenIdProvider, Visitor } from '../../support/openid-provider.ts';
import { metric, useService } from '../../support/service.ts';
import { useStore } from '../../support/store.ts';

const db = useStore();
const logged: string[] = [];
const log = pino({ level: 'info' }, { write: (line: string) => void logged.push(line) });
const people = {
  anna: { accounts: 'acme' },
  ben: { accounts: ['acme', 'Größe & Co', 'acme'] },
  cleo: { accounts: { campaigns: ['acme'], ad_units: ['acme', 'fjord', 'fjord'] } },
  dora: {},
  emil: { accounts: [''] },
  finn: { accounts: Array.from({ length: 400 }, (_, n) => `account-${n}`) },
};
const provider = useOpenIdProvider(people);
const service = useService(db, provider.env(), log);
const beside = useService(db, provider.env({ PORT: '0' }));

const asked = { start_time: '2026-01-01', end_time: '2026-12-31' };
const path = '/v1/campaigns';

/** A report as the page asks for it, or with other headers. */
const report = (visitor: Visitor, account: string, { url = service.url, on = path, headers = {} } = {}) =>
  visitor.fetch(url + on, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      'sec-fetch-site': 'same-origin',
      'adtally-account': encodeURIComponent(account),
      ...headers,
    },
    body: JSON.stringify(asked),
  });
const statusOf = async (...request: Parameters<typeof report>) => (await report(...request)).status;
const signedIn = async (person: string) => {
  const visitor = new Visitor();
  expect(await visitor.signIn(service.url, person)).toBe('/app');
  return visitor;
};
const accountsOf = async (visitor: Visitor) => {
  const response = await visitor.fetch(`${service.url}/auth/session`);
  return (JSON.parse(await response.text()) as { accounts: string[] }).accounts;
};
const signOut = (visitor: Visitor, query = '', headers = {}) =>
  visitor.fetch(`${service.url}/auth/sign-out${query}`, {
    method: 'POST',
    headers: { 'sec-fetch-site': 'same-origin', ...headers },
  });

const refusals = (reason: string) => metric(service.url, `adtally_logins_refused_total{reason="${reason}"}`);

beforeAll(() =>
  load(db.store, [
    event({ event_id: 'a', event_time: '2026-05-01T10:00:00Z', advertiser_id: 'acme', spend: '1.5' }),
    event({ event_id: 'b', event_time: '2026-05-01T10:00:00Z', advertiser_id: 'Größe & Co', spend: '2.5' }),
    event({ event_id: 'c', event_time: '2026-05-01T10:00:00Z', advertiser_id: 'fjord', spend: '3.5' }),
  ]),
);
afterEach(() => {
  vi.useRealTimers();
  provider.hold(false);
});

describe('whoever signs in', () => {
  test('sees the accounts of the claim, one at a time, and no other', async () => {
    const ben = await signedIn('ben');
    expect(await accountsOf(ben)).toEqual(['acme', 'Größe & Co']);
    for (const [account, spent] of [
      ['acme', '"spent":1.5}'],
      ['Größe & Co', '"spent":2.5}'],
    ] as const) {
      const response = await report(ben, account);
      expect(response.status).toBe(200);
      expect(await response.text()).toContain(spent);
    }
    const refused = await report(ben, 'fjord');
    expect(refused.status).toBe(401);
    expect(refused.headers.get('www-authenticate')).toContain('Bearer');
    expect(await refused.json()).toMatchObject({ detail: 'whoever signed in may not see this account' });
    expect(await statusOf(await signedIn('anna'), 'Größe & Co')).toBe(401);
  });

  test('sees one family of an account where the claim names it alone', async () => {
    const cleo = await signedIn('cleo');
    const adUnits = { on: '/v1/ad_units' };
    expect(await accountsOf(cleo)).toEqual(['acme', 'fjord']);
    expect([await statusOf(cleo, 'acme'), await statusOf(cleo, 'acme', adUnits)]).toEqual([200, 200]);
    expect([await statusOf(cleo, 'fjord'), await statusOf(cleo, 'fjord', adUnits)]).toEqual([401, 200]);
  });

  test('is told where no account is open, or too many are', async () => {
    const visitor = await signedIn('anna');
    for (const person of ['dora', 'emil']) {
      expect(await new Visitor().signIn(service.url, person)).toBe('/app#sign-in=no_accounts');
    }
    // The provider's session is another matter: this browser signs in there as somebody else.
    for (const name of visitor.cookies.keys()) if (!name.startsWith('adtally')) visitor.cookies.delete(name);
    expect(await visitor.signIn(service.url, 'dora')).toBe('/app#sign-in=no_accounts');
    expect(await accountsOf(visitor)).toEqual([]);
    expect(await new Visitor().signIn(service.url, 'finn')).toBe('/app#sign-in=too_many_accounts');
  });

  test('stands in the log, and no secret does', async () => {
    const before = logged.length;
    const anna = await signedIn('anna');
    await report(anna, 'acme');
    await vi.waitFor(
      () => expect(logged.slice(before).join('')).toContain('"endpoint":"/v1/campaigns"'),
      10_000,
    );
    const lines = logged.slice(before).map((line) => JSON.parse(line));
    expect(lines).toContainEqual(
      expect.objectContaining({
        msg: 'signed in',
        person: 'anna',
        accounts: [['acme', null]],
        address: '127.0.0.1',
      }),
    );
    expect(lines).toContainEqual(
      expect.objectContaining({ endpoint: path, person: 'anna', account: 'acme' }),
    );
    const said = logged.join('');
    for (const secret of [clientSecret, ...anna.cookies.values()]) expect(said).not.toContain(secret);
    expect(said).not.toMatch(/eyJ|code=|verifier/);
  });

  test('may have a token, too, which is what counts', async () => {
    const ben = await signedIn('ben');
    const authorization = `Bearer ${await service.token('fjord')}`;
    const response = await report(ben, 'acme', { headers: { authorization } });
    expect(await response.text()).toContain('"spent":3.5}');
    expect(await statusOf(ben, 'acme', { headers: { authorization: 'Bearer adt_nothing' } })).toBe(401);
  });
});

describe('a session', () => {
  test('is a cookie that scripts and other sites do not get', async () => {
    const visitor = new Visitor();
    let callback = '';
    await visitor.signIn(service.url, 'anna', {
      back: (address) => {
        callback = address.href;
        address.searchParams.set('state', 'another');
      },
    });
    const started = await visitor.fetch(`${service.url}/auth/sign-in`);
    expect(started.headers.get('set-cookie')).toMatch(/^adtally-attempt=.*; HttpOnly; SameSite=Lax$/);
    expect(callback).toContain('code=');
    const anna = new Visitor();
    const kept: string[] = [];
    const fetched = anna.fetch.bind(anna);
    anna.fetch = async (...request) => {
      const response = await fetched(...request);
      kept.push(...response.headers.getSetCookie());
      return response;
    };
    await anna.signIn(service.url, 'anna');
    expect(kept.find((line) => line.startsWith('adtally-session=ey'))).toMatch(
      /; Max-Age=28800; Path=\/; HttpOnly; SameSite=Strict$/,
    );
  });

  test('opens reports for the page alone: not for other sites, assistants, exports and links', async () => {
    const anna = await signedIn('anna');
    const before = await refusals('other_site');
    for (const site of ['cross-site', 'same-site', 'none']) {
      expect(await statusOf(anna, 'acme', { headers: { 'sec-fetch-site': site } }), site).toBe(401);
    }
    await expect.poll(() => refusals('other_site')).toBe(before + 3);
    const mcp = { accept: 'application/json, text/event-stream' };
    for (const on of ['/mcp', '/v1/links/campaigns.csv']) {
      expect(await statusOf(anna, 'acme', { on, headers: mcp }), on).toBe(401);
    }
    const headers = { 'adtally-account': 'acme', 'sec-fetch-site': 'same-origin' };
    const address = `${service.url}/v1/export/campaigns.csv?start_time=2026-01-01&end_time=2026-12-31`;
    expect((await anna.fetch(address, { headers })).status).toBe(401);
    expect((await signOut(anna, '', { 'sec-fetch-site': 'cross-site' })).status).toBe(401);
    expect(await statusOf(anna, 'acme')).toBe(200);
  });

  test('cannot be made by hand', async () => {
    const ben = await signedIn('ben');
    const [head = '', said = '', proof = ''] = (ben.cookies.get('adtally-session') ?? '').split('.');
    const claims = JSON.parse(Buffer.from(said, 'base64url').toString());
    const packed = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url');
    const others = packed({ ...claims, accounts: [['fjord', null]] });
    await ben.fetch(`${service.url}/auth/sign-in`);
    const forged = [
      `${head}.${others}.${proof}`,
      `${packed({ alg: 'none', typ: 'JWT' })}.${others}.`,
      `${head}.${said}.`,
      ben.cookies.get('adtally-attempt') ?? '',
      'nothing',
      '',
    ];
    for (const cookie of forged) {
      ben.cookies.set('adtally-session', cookie);
      for (const account of ['acme', 'fjord']) expect(await statusOf(ben, account), cookie).toBe(401);
      expect(await accountsOf(ben)).toEqual([]);
    }
    ben.cookies.set('adtally-session', `${head}.${said}.${proof}`);
    expect(await statusOf(ben, 'acme')).toBe(200);
  });

  test('has paths that take one method each, and say so', async () => {
    for (const path of ['sign-in', 'callback', 'session', 'sign-out']) {
      const method = path === 'sign-out' ? 'GET' : 'POST';
      const answer = await fetch(`${service.url}/auth/${path}`, { method });
      const allow = path === 'sign-out' ? 'POST' : 'GET, HEAD';
      expect([path, answer.status, answer.headers.get('allow')]).toEqual([path, 405, allow]);
    }
  });

  test('ends after eight hours', async () => {
    const anna = await signedIn('anna');
    const before = await refusals('expired');
    vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + 8 * 3_600_000 - 60_000 });
    expect(await statusOf(anna, 'acme')).toBe(200);
    vi.setSystemTime(Date.now() + 120_000);
    expect(await statusOf(anna, 'acme')).toBe(401);
    vi.useRealTimers();
    await expect.poll(() => refusals('expired')).toBe(before + 1);
  });

  test('ends in its browser with a sign-out, and in every browser and process where that is asked for', async () => {
    const [here, there, ben] = [await signedIn('anna'), await signedIn('anna'), await signedIn('ben')];
    const gone = await signedIn('anna');
    expect((await signOut(gone)).status).toBe(204);
    expect([await statusOf(gone, 'acme'), await statusOf(here, 'acme')]).toEqual([401, 200]);
    expect(await statusOf(there, 'acme', { url: beside.url })).toBe(200);

    expect((await signOut(here, '?everywhere')).status).toBe(204);
    expect(await statusOf(there, 'acme')).toBe(401);
    expect((await signOut(there, '?everywhere')).status).toBe(401);
    await expect.poll(() => statusOf(there, 'acme', { url: beside.url }), { timeout: 5_000 }).toBe(401);
    // Nobody else is signed out, and no token ends.
    expect(await statusOf(ben, 'acme')).toBe(200);
    expect((await service.post(path, 'acme', asked)).status).toBe(200);
    // A later session is a new one.
    const again = await signedIn('anna');
    expect([await statusOf(again, 'acme'), await statusOf(there, 'acme')]).toEqual([200, 401]);
    await expect.poll(() => statusOf(again, 'acme', { url: beside.url }), { timeout: 5_000 }).toBe(200);
  });
});

describe('an attempt to sign in', () => {
  test('ends where its state, its nonce or its code is not the one that was begun', async () => {
    const attempt = (change: Parameters<Visitor['signIn']>[2]) =>
      new Visitor().signIn(service.url, 'anna', change);
    const there = (name: string, value: string) => ({
      there: (address: URL) => address.searchParams.set(name, value),
    });
    const back = (name: string) => ({ back: (address: URL) => address.searchParams.set(name, 'forged') });
    expect(await attempt(back('state'))).toBe('/app#sign-in=other_tab');
    expect(await attempt(there('nonce', 'forged'))).toBe('/app#sign-in=failed');
    expect(await attempt(there('code_challenge', 'x'.repeat(43)))).toBe('/app#sign-in=failed');
    expect(await attempt(back('code'))).toBe('/app#sign-in=failed');
    expect(await attempt(back('iss'))).toBe('/app#sign-in=failed');
  });

  test('is the business of one browser: nobody gets signed in as somebody else', async () => {
    let callback = '';
    await new Visitor().signIn(service.url, 'anna', {
      back: (address) => {
        callback = address.href;
        address.searchParams.set('state', 'another');
      },
    });
    const victim = new Visitor();
    await victim.fetch(`${service.url}/auth/sign-in`);
    const response = await victim.fetch(callback);
    expect(response.headers.get('location')).toBe('/app#sign-in=other_tab');
    expect(await accountsOf(victim)).toEqual([]);
  });

  test('counts once: the second of two tabs gets in, the first is told, and an address is no use again', async () => {
    const visitor = new Visitor();
    let first = '';
    await visitor.signIn(service.url, 'anna', {
      back: (address) => {
        first = address.href;
        address.searchParams.set('state', 'another');
      },
    });
    expect(await visitor.signIn(service.url, 'anna')).toBe('/app');
    const late = await visitor.fetch(first);
    expect(late.headers.get('location')).toBe('/app#sign-in=other_tab');
    expect(await accountsOf(visitor)).toEqual(['acme']);
  });

  test('says that the person refused, or that the provider is away, and goes on when it is back', async () => {
    expect(await new Visitor().signIn(service.url, '')).toBe('/app#sign-in=refused');
    const away = { back: () => provider.hold(true) };
    expect(await new Visitor().signIn(service.url, 'anna', away)).toBe('/app#sign-in=away');
    provider.hold(false);
    await signedIn('anna');
  });
});

describe('at a provider that says all in its token', () => {
  const early = useOpenIdProvider(people, { conformIdTokenClaims: false });
  const late = useService(db, early.env({ RATE_LIMIT_REQUESTS: '3' }));

  test('clocks may differ a little; after some failed attempts of an address nobody is asked any more', async () => {
    early.setBack(620_000);
    expect(await new Visitor().signIn(late.url, 'anna')).toBe('/app');
    const waiting = new Visitor();
    let callback = '';
    const holdUp = ({ href }: URL) => {
      callback = href;
      throw new Error('held up');
    };
    await expect(waiting.signIn(late.url, 'anna', { back: holdUp })).rejects.toThrow('held up');
    early.setBack(640_000);
    for (let n = 0; n < 3; n++) {
      expect(await new Visitor().signIn(late.url, 'anna')).toBe('/app#sign-in=clock');
    }
    const { codes } = early;
    expect((await waiting.fetch(callback)).status).toBe(429);
    await expect(new Visitor().signIn(late.url, 'anna')).rejects.toThrow(
      '/auth/sign-in answered with status 429',
    );
    expect([codes, early.codes]).toEqual([4, 4]);
  });
});

describe('behind a proxy with TLS', () => {
  const secure = useService(db, provider.env({ PORT: '0', PUBLIC_URL: 'https://reports.example.com/' }));

  test('cookies go over TLS to this host alone, and the way back leads to the public address', async () => {
    const response = await fetch(`${secure.url}/auth/sign-in`, { redirect: 'manual' });
    expect(response.headers.get('set-cookie')).toMatch(
      /^__Host-adtally-attempt=[\w.-]+; Max-Age=600; Path=\/; HttpOnly; Secure; SameSite=Lax$/,
    );
    const { searchParams } = new URL(response.headers.get('location') ?? '');
    expect(searchParams.get('redirect_uri')).toBe('https://reports.example.com/auth/callback');
    expect(await (await fetch(`${secure.url}/app`)).text()).toContain(
      'href="https://reports.example.com/auth/sign-in"',
    );
  });
});

describe('without a provider', () => {
  const plain = useService(db);

  test('there is no such path, and the page says nothing of it', async () => {
    for (const each of ['/auth/sign-in', '/auth/callback', '/auth/session']) {
      expect((await fetch(plain.url + each)).status).toBe(404);
    }
    expect(await (await fetch(`${plain.url}/app`)).text()).not.toContain('auth/sign-in');
  });
});
