import type { ParsedMail } from 'mailparser';
import { expect, test } from 'vitest';
import type { Store } from '../../clickhouse/client.ts';
import { Links } from '../../src/accounts/links.ts';
import { createToken, listTokens, revokeTokens } from '../../src/accounts/tokens.ts';
import { revokeToken } from '../../src/operations/access.ts';
import { commandLine } from '../../src/operations/audit.ts';
import { unsentMails } from '../../src/schedules/mails.ts';
import {
  agree,
  listAnswers,
  listSchedules,
  ownOf,
  storeSchedule,
  tokenLabel,
  tokenOf,
  unsubscribe,
} from '../../src/schedules/schedules.ts';
import { useMailServer } from '../support/mail-server.ts';
import { linkSecret, useMails } from '../support/mails.ts';
import { postJson } from '../support/process.ts';
import { useService } from '../support/service.ts';
import { useStore } from '../support/store.ts';

const db = useStore();
const service = useService(db, { LINK_SECRET: linkSecret, ACCOUNT_MAILS: 'on' });
const second = useService(db, { LINK_SECRET: linkSecret, ACCOUNT_MAILS: 'on' });
const without = useService(db, { LINK_SECRET: linkSecret });
const mailServer = useMailServer();
const { look, recipients, said, scheduled } = useMails(db, service, mailServer);

const daily = {
  report: 'campaigns/device',
  to: ['anna@example.com'],
  every: 'day',
  at: '00:00',
  wait: '0h',
};

async function change(
  account: string,
  name: string,
  body: object,
): Promise<{ status: number; said: string; id: string }> {
  const answer = await service.post(`/v1/schedule/${name}`, account, body);
  const { result, detail } = Object(await answer.json());
  return { status: answer.status, said: detail ?? '', id: result?.id ?? '' };
}

async function list(token: string) {
  const answer = await fetch(`${service.url}/v1/schedule/list`, {
    headers: { authorization: `Bearer ${token}` },
  });
  expect(answer.status).toBe(200);
  return Object(await answer.json()).result;
}
const listOf = async (account: string) => list(await service.token(account));

/** Makes one that was there since a time when nothing was due yet. */
async function since(account: string, body: object, day: string): Promise<string> {
  const { id, said } = await change(account, 'create', body);
  const schedule = (await listSchedules(db.store)).find((each) => each.id === id);
  if (!schedule) throw new Error(`not made: ${said}`);
  await storeSchedule(db.store, { ...schedule, since: new Date(`${day}T00:00:00Z`) });
  return id;
}

const subjects = () => mailServer.mails.map(({ subject }) => subject);
const linkOf = (mail: ParsedMail | undefined, path: string) =>
  new RegExp(`\\S+/${path}\\?\\S+`).exec(mail?.text ?? '')?.[0] ?? '';
const click = (address: string) => fetch(address, { method: 'POST' });
/** So many days from now, after the time of day of schedules. */
const later = (days: number) =>
  `${new Date(Date.now() + days * 86_400_000).toISOString().slice(0, 10)}T06:30:00Z`;

test('a recipient is asked once, gets nothing before a yes, and what is due after it', async () => {
  const to = ['anna@example.com', 'bo@example.com'];
  await since('shop', { ...daily, to, language: 'de' }, '2026-03-02');
  await since('shop', { ...daily, to, language: 'de', attach: 'csv' }, '2026-03-02');
  expect(await look('2026-03-05T06:30:00Z')).toBe(0);
  expect(await look('2026-03-06T06:30:00Z')).toBe(0);
  expect(subjects()).toEqual(['Möchten Sie Berichte per E-Mail?', 'Möchten Sie Berichte per E-Mail?']);
  const [first, second] = mailServer.mails;
  expect(first?.text).toContain('\u2068shop\u2069');
  expect(await listOf('shop')).toMatchObject([{ not_agreed: to }, { not_agreed: to }]);
  // A program that looks at links has not agreed.
  expect(await (await fetch(linkOf(first, 'agree'))).text()).toContain('<form method="post">');
  expect((await click(linkOf(first, 'agree').replace('shop', 'other'))).status).toBe(404);
  expect((await click(linkOf(first, 'unsubscribe').replace('unsubscribe', 'agree'))).status).toBe(404);
  expect(await (await click(linkOf(first, 'agree'))).text()).toContain(
    'anna@example.com bekommt die Berichte',
  );
  expect((await click(linkOf(second, 'unsubscribe'))).status).toBe(200);
  mailServer.mails.length = 0;
  await look(later(1));
  expect(recipients()).toEqual(['anna@example.com', 'anna@example.com']);
  expect(subjects()[0]).toContain('Kampagnen nach Gerät');
  expect(await listOf('shop')).toMatchObject([
    { not_agreed: [], left: ['bo@example.com'] },
    { not_agreed: [], left: ['bo@example.com'] },
  ]);
});

test('a no is for all mails of the account, however the address is written, until the recipient says yes by the link they got', async () => {
  const to = ['anna@example.com'];
  const from = '2026-03-02';
  await since('friend', { ...daily, to, language: 'de' }, from);
  await since('friend', { ...daily, to, language: 'de', attach: 'csv' }, from);
  await look('2026-03-05T06:30:00Z');
  const [question] = mailServer.mails;
  await click(linkOf(question, 'agree'));
  mailServer.mails.length = 0;
  await look(later(1));
  expect(recipients()).toEqual(['anna@example.com', 'anna@example.com']);
  const [report] = mailServer.mails;
  expect(report?.text).toContain('Keine Berichte mehr von diesem Konto: ');
  const no = linkOf(report, 'unsubscribe');
  expect(await (await fetch(no)).text()).toContain(
    'Berichte mehr, die das Konto \u2068friend\u2069 an anna@',
  );
  expect(await (await click(no)).text()).toContain(
    'anna@example.com bekommt keine Berichte mehr, die das Konto \u2068friend\u2069 sendet.',
  );
  await since('friend', { ...daily, to: ['Anna@Example.com', 'ANNA@example.com'] }, from);
  mailServer.mails.length = 0;
  await look(later(2));
  expect(recipients()).toEqual([]);
  expect(await listOf('friend')).toMatchObject([{ left: to }, { left: to }, { to, left: to }]);

  expect(await (await click(linkOf(question, 'agree'))).text()).toContain(
    'anna@example.com bekommt die Berichte, die ab jetzt fällig sind.',
  );
  await look(later(1));
  expect(recipients()).toEqual(['anna@example.com']);
  await look(later(2));
  expect(recipients()).toHaveLength(4);
  await click(no);
  await look(later(3));
  expect(recipients()).toHaveLength(4);
});

test('a question that the mail server refused, or may have taken, is seen in the list, and sent again if somebody says so', async () => {
  const to = ['anna@example.com', 'bo@example.com'];
  const id = await since('asks', { ...daily, to }, '2026-03-02');
  mailServer.answer({ code: 550, at: 'recipient' }, 'leaves');
  expect(await look('2026-03-05T06:30:00Z')).toBe(2);
  expect(said[0]).toMatch(/^question of account asks to anna@example.com: refused /);
  const question = { asks: true, day: '1970-01-01' };
  expect(await listOf('asks')).toMatchObject([
    {
      not_agreed: to,
      mails: [
        { ...question, recipient: 'anna@example.com', state: 'refused' },
        { ...question, recipient: 'bo@example.com', state: 'unknown' },
      ],
    },
  ]);
  // The account has given the address: it is not for the operator to look.
  expect((await unsentMails(db.store, new Date('2026-03-05T06:30:00Z'), 'UTC')).stuck).toBe(0);
  mailServer.mails.length = 0;
  await look('2026-03-05T12:00:00Z');
  const others = await since('asks-nobody', daily, '2026-03-02');
  await look('2026-03-05T12:00:00Z', { again: others });
  expect(recipients()).toEqual(['anna@example.com']);
  expect(mailServer.mails[0]?.text).toContain('\u2068asks-nobody\u2069');
  mailServer.mails.length = 0;
  // Nobody is asked for a schedule of the operator.
  const { id: operators } = await scheduled({ account: 'asks', since: new Date('2026-03-05T12:00:00Z') });
  await look('2026-03-05T12:00:00Z', { again: operators });
  expect(recipients()).toEqual([]);
  await look('2026-03-05T12:00:00Z', { again: id });
  expect(recipients()).toEqual(to);
  expect(await listOf('asks')).toMatchObject([{ mails: [{ state: 'sent' }, { state: 'sent' }] }]);
});

test('a question that the mail server puts off is tried for two weeks, and then only if somebody says so', async () => {
  // The sender was not there for a month.
  const from = new Date('2026-02-01T00:00:00Z');
  const { id } = await scheduled({ account: 'busy', token: '', madeBy: 'person jo', since: from });
  const busy = () => mailServer.answer({ code: 451, at: 'recipient' });
  busy();
  expect(await look('2026-03-02T06:00:00Z')).toBe(1);
  busy();
  expect(await look('2026-03-15T06:00:00Z')).toBe(1);
  const late = new Date('2026-03-16T07:00:00Z');
  expect(await look(late.toISOString())).toBe(0);
  expect(mailServer.mails).toEqual([]);
  expect(await unsentMails(db.store, late, 'UTC')).toEqual({ oldest: Number.NaN, stuck: 0 });
  expect(await listOf('busy')).toMatchObject([{ mails: [{ asks: true, state: 'refused' }] }]);
  expect(await look(late.toISOString(), { again: id })).toBe(0);
  expect(mailServer.mails).toHaveLength(1);
});

test('an account sees and touches its own schedules alone, and a token of one family those of that family', async () => {
  const { id } = await change('a', 'create', daily);
  const { id: units } = await change('a', 'create', { ...daily, report: 'ad_units' });
  const operators = await scheduled({ account: 'a' });
  expect((await listOf('a')).map((each: { id: string }) => each.id).toSorted()).toEqual(
    [id, units].toSorted(),
  );
  expect(await listOf('b')).toEqual([]);
  for (const name of ['pause', 'resume', 'remove']) {
    expect(await change('b', name, { schedule: id })).toMatchObject({ status: 400 });
    expect(await change('a', name, { schedule: operators.id })).toMatchObject({ status: 400 });
  }
  const states = (await listSchedules(db.store))
    .filter(({ account }) => account === 'a')
    .map(({ state }) => state);
  expect(states).toEqual(['active', 'active', 'active']);

  const one = await createToken(db.store, { account: 'a', label: '', family: 'campaigns' });
  const ask = (name: string, body: object) => postJson(`${service.url}/v1/schedule/${name}`, one, body);
  expect((await ask('create', { ...daily, report: 'ad_units' })).status).toBe(400);
  expect((await ask('pause', { schedule: units })).status).toBe(400);
  expect((await ask('pause', { schedule: id })).status).toBe(200);
  expect((await list(one)).map((each: { id: string }) => each.id)).toEqual([id]);
  expect(await change('a', 'remove', { schedule: id })).toMatchObject({ status: 200 });
  expect((await listOf('a')).map((each: { id: string }) => each.id)).toEqual([units]);
});

test('a wrong schedule is refused with the field at fault, and one for another account is not known', async () => {
  const refused = async (more: object) => (await change('strict', 'create', { ...daily, ...more })).said;
  expect(await refused({ account: 'other' })).toContain('account is not known');
  expect(await refused({ to: ['anna'] })).toContain('to.0 must be a mail address');
  expect(await refused({ language: 'fr' })).toContain('language must be one of en, de, ja');
  expect(await refused({ body: { filters: { site: ['a'] } } })).toContain('filters.site');
  const campaign = Array.from({ length: 100 }, (_, n) => `秋のキャンペーン ${n}`);
  expect(await refused({ body: { filters: { campaign } } })).toContain('too many filters');
  expect((await service.post('/v1/schedule/create', 'strict', '{')).status).toBe(400);
  expect(await listOf('strict')).toEqual([]);
  expect((await without.post('/v1/schedule/create', 'strict', daily)).status).toBe(404);
  expect((await fetch(`${service.url}/v1/schedule/list`)).status).toBe(401);
  const posted = await fetch(`${service.url}/v1/schedule/list`, { method: 'POST' });
  expect([posted.status, posted.headers.get('allow')]).toEqual([405, 'GET, HEAD']);
  expect((await fetch(`${service.url}/v1/schedule/create`)).status).toBe(405);
});

test('a field of the body of a schedule that is null is not given, as in a report', async () => {
  const nothing = { filters: null, compare_to: null, limit: null, as_of: null, start_time: null };
  const body = {
    ...nothing,
    metrics: ['impressions'],
    order_by: [{ field: 'impressions', direction: null }],
  };
  expect(await change('nulls', 'create', { ...daily, body })).toMatchObject({ status: 200 });
  const given = { metrics: ['impressions'], order_by: [{ field: 'impressions' }] };
  expect(await listOf('nulls')).toMatchObject([{ body: given }]);
  expect(Object.keys((await listOf('nulls'))[0].body)).toEqual(Object.keys(given));
});

test('an account has 20 schedules and 50 recipients at most, however many it asks for at once', async () => {
  const asked = await Promise.all(
    Array.from({ length: 25 }, (_, n) => change('many', 'create', { ...daily, at: `06:${n + 10}` })),
  );
  expect(asked.filter(({ status }) => status === 200)).toHaveLength(20);
  expect(await listOf('many')).toHaveLength(20);
  const to = (from: number) => Array.from({ length: 40 }, (_, n) => `r${from + n}@example.com`);
  expect(await change('crowd', 'create', { ...daily, to: to(0) })).toMatchObject({ status: 200 });
  expect(await change('crowd', 'create', { ...daily, to: to(40) })).toMatchObject({ status: 400 });
});

test('a schedule that is asked for again, because the answer was lost, is there once', async () => {
  const body = { ...daily, body: { filters: { device: ['mobile', 'tv'] }, limit: 10 } };
  const first = await change('again', 'create', body);
  expect(await change('again', 'create', body)).toEqual(first);
  expect(await listOf('again')).toHaveLength(1);
  const other = await change('again', 'create', { ...body, at: '07:00' });
  expect(other.id).not.toBe(first.id);
  await change('again', 'pause', { schedule: first.id });
  expect([first.id, other.id]).not.toContain((await change('again', 'create', body)).id);
});

test('a schedule that two services are asked for at once is there once', async () => {
  const body = JSON.stringify({ ...daily, at: '09:00' });
  const headers = {
    authorization: `Bearer ${await service.token('both')}`,
    'content-type': 'application/json',
  };
  for (let round = 1; round <= 3; round++) {
    const asked = [service, second].map(({ url }) =>
      fetch(`${url}/v1/schedule/create`, { method: 'POST', headers, body }),
    );
    const answers = await Promise.all(asked);
    for (const answer of answers) expect(answer.status).toBe(200);
    const ids = await Promise.all(answers.map(async (answer) => Object(await answer.json()).result.id));
    const [{ id }, ...more] = await listOf('both');
    expect(more).toEqual([]);
    expect(ids).toContain(id);
    await change('both', 'remove', { schedule: id });
  }
});

test('an account that has had 50 strangers asked in vain can have no more asked', async () => {
  const strangers = Array.from({ length: 49 }, (_, n) => `${n}@example.com`);
  await db.store.command({
    query: `INSERT INTO mails (schedule, day, recipient, attempt, taker, state, at)
            SELECT {own:String}, '1970-01-01', arrayJoin({strangers:Array(String)}), 1, '', 'sent', now64(3)`,
    query_params: { own: ownOf('spam'), strangers },
  });
  const to = ['anna@example.com', 'bo@example.com', 'jo@example.com'];
  await change('spam', 'create', { ...daily, to });
  await look(later(0));
  expect(recipients()).toEqual(['anna@example.com']);
  mailServer.mails.length = 0;
  // Whoever has agreed was not asked in vain, also if they have had enough since.
  await agree(db.store, ownOf('spam'), 'anna@example.com');
  await unsubscribe(db.store, ownOf('spam'), 'anna@example.com');
  await look(later(0));
  expect(recipients()).toEqual(['bo@example.com']);
  await look(later(0));
  expect(recipients()).toHaveLength(1);
});

/** A second version of a schedule as a node would have stored it whose clock is ahead. */
const storedAhead = (id: string) =>
  db.store.command({
    query: `INSERT INTO schedules SELECT * REPLACE (now64(6) + INTERVAL 10 MINUTE AS version) FROM schedules FINAL WHERE id = {id:String}`,
    query_params: { id },
  });

const stateOf = async (id: string) => (await listSchedules(db.store)).find((each) => each.id === id)?.state;

test('a schedule is paused, resumed and removed also where a clock was ahead that stored it before', async () => {
  const { id } = await change('ahead', 'create', daily);
  await storedAhead(id);
  expect(await change('ahead', 'pause', { schedule: id })).toMatchObject({ status: 200 });
  expect(await stateOf(id)).toBe('paused');
  await change('ahead', 'resume', { schedule: id });
  expect(await stateOf(id)).toBe('active');
  await storedAhead(id);
  await change('ahead', 'remove', { schedule: id });
  expect(await stateOf(id)).toBeUndefined();
});

test('a schedule that is removed while somebody pauses it stays removed, and a change that is undone at once fails', async () => {
  const schedule = await scheduled();
  await storeSchedule(db.store, { ...schedule, state: 'removed' });
  await expect(storeSchedule(db.store, { ...schedule, state: 'paused' })).rejects.toThrow(/was not paused/);
  expect(await stateOf(schedule.id)).toBeUndefined();
});

test('an answer of a recipient counts also where a clock was ahead that noted the one before', async () => {
  const own = ownOf('clocks');
  const recipient = 'anna@example.com';
  const since = async () => (await listAnswers(db.store, [own])).get(own)?.get(recipient)?.since;
  const ahead = (minutes: number) =>
    db.store.command({
      query: `INSERT INTO agreed SELECT {own:String}, {recipient:String}, now64(3) + INTERVAL {minutes:UInt8} MINUTE`,
      query_params: { own, recipient, minutes },
    });
  await ahead(10);
  await unsubscribe(db.store, own, recipient);
  expect(await since()).toBeUndefined();
  await agree(db.store, own, recipient);
  expect(await since()).toBeInstanceOf(Date);
});

/** Makes a schedule with a token of its own text. */
async function createdWith(token: string): Promise<void> {
  const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' };
  const body = JSON.stringify(daily);
  const made = await fetch(`${service.url}/v1/schedule/create`, { method: 'POST', headers, body });
  expect(made.status).toBe(200);
}

test('the schedule of a token ends when it is revoked', async () => {
  const token = await createToken(db.store, { account: 'ends', label: 'to be revoked' });
  await createdWith(token);
  await revokeTokens(db.store, { token });
  expect(await listOf('ends')).toMatchObject([{ state: 'ended' }]);
  const [{ id }] = await listOf('ends');
  expect((await change('ends', 'resume', { schedule: id })).said).toContain('has ended with its token');
});

test('the schedule of a token that ends by itself goes on after that, and ends when the token is revoked', async () => {
  const expires = new Date(Date.now() + 3_600_000);
  const token = await createToken(db.store, { account: 'visit', label: 'of jane', expires });
  await createdWith(token);
  await db.store.command({
    query: `INSERT INTO tokens SELECT * REPLACE (now64(3) AS expires_at, now64(6) AS version) FROM tokens FINAL
            WHERE account_id = 'visit'`,
  });
  expect(await listOf('visit')).toMatchObject([{ state: 'active' }]);
  await look(later(0));
  await click(linkOf(mailServer.mails[0], 'agree'));
  mailServer.mails.length = 0;
  expect(await look(later(1))).toBe(0);
  expect(mailServer.mails[0]?.attachments).toHaveLength(1);
  await revokeTokens(db.store, { token });
  expect(await listOf('visit')).toMatchObject([{ state: 'ended' }]);
});

test('the schedule of a person, who has no token, gets one that nobody knows, and ends when that is revoked', async () => {
  const person = await scheduled({ account: 'person', token: '', madeBy: 'person jo' });
  await look('2026-03-02T06:30:00Z');
  await click(linkOf(mailServer.mails[0], 'agree'));
  mailServer.mails.length = 0;
  await look(later(1));
  expect(mailServer.mails[0]?.attachments).toHaveLength(1);
  const tokens = await listTokens(db.store, { account: 'person' });
  const own = tokens.find(({ label }) => label === tokenLabel(person));
  expect(own).toMatchObject({ family: 'campaigns' });
  await revokeTokens(db.store, { id: own?.id ?? '' });
  expect(await listOf('person')).toMatchObject([{ state: 'ended' }]);
  mailServer.mails.length = 0;
  expect(await look(later(2))).toBe(0);
  expect(mailServer.mails).toEqual([]);
});

test('the token of a schedule is read alone, however many its account has: there may be one for each visit of years', async () => {
  const schedule = await scheduled({ account: 'many', token: '', madeBy: 'person jo' });
  for (const label of ['', 'visit']) await createToken(db.store, { account: 'many', label });
  const own = await tokenOf(db.store, schedule);
  const read: unknown[] = [];
  const store: Store = Object.create(db.store);
  store.query = async (params: Parameters<Store['query']>[0]) => {
    const answer = await db.store.query(params);
    const rows = await answer.json();
    read.push(...[rows].flat());
    return Object.assign(Object.create(answer), { json: async () => rows });
  };
  expect(await tokenOf(store, schedule)).toEqual(own);
  expect(await tokenOf(store, { ...schedule, token: own?.id ?? '' })).toEqual(own);
  expect(read).toEqual([own, own]);
});

test('where all tokens of an account are revoked, a schedule of a person that has sent nothing yet ends, too', async () => {
  await scheduled({ account: 'closed', token: '', madeBy: 'person jo' });
  const { id } = await scheduled({ account: 'open', token: '', madeBy: 'person jo' });
  const context = { by: commandLine(), links: new Links(() => undefined), answerTrustMs: 0 };
  const { revoked } = await revokeToken.run({ ...context, store: db.store }, { account: 'closed' });
  expect(revoked).toHaveLength((await listTokens(db.store, { account: 'closed' })).length);
  expect(await list(await createToken(db.store, { account: 'closed', label: '' }))).toMatchObject([
    { state: 'ended' },
  ]);
  expect(await stateOf(id)).toBe('active');
});

test('the last answer of a recipient counts, and a yes since the first one after the last no', async () => {
  const at = (hour: number) => `2026-03-02 ${`${hour}`.padStart(2, '0')}:00:00.000`;
  const said = async (table: string, recipient: string, ...hours: number[]) => {
    for (const hour of hours) {
      const values = [{ schedule: 'said', recipient, at: at(hour) }];
      await db.store.insert({ table, values, format: 'JSONEachRow' });
    }
  };
  await said('agreed', 'anna', 2, 1, 5, 4);
  await said('unsubscribed', 'anna', 3);
  await said('agreed', 'bo', 1, 2);
  await said('unsubscribed', 'bo', 2);
  await said('unsubscribed', 'cy', 1);
  await db.store.insert({
    table: 'agreed',
    values: [{ schedule: 'other', recipient: 'anna' }],
    format: 'JSONEachRow',
  });
  const answers = await listAnswers(db.store, ['said', 'unknown']);
  expect([...answers.keys()]).toEqual(['said']);
  expect(Object.fromEntries(answers.get('said') ?? [])).toEqual({
    anna: { since: new Date('2026-03-02T04:00:00Z'), hasAgreed: true },
    bo: { since: undefined, hasAgreed: true },
    cy: { since: undefined, hasAgreed: false },
  });
});
