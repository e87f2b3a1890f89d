import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import { type AddressInfo, connect, createServer as createTcpServer, type Server, Socket } from 'node:net';
import { setImmediate } from 'node:timers/promises';
import { parse } from 'lossless-json';
import type { ParsedMail } from 'mailparser';
import { afterEach, expect, test, vi } from 'vitest';
import { select } from '../../clickhouse/client.ts';
import { Links } from '../../src/accounts/links.ts';
import { revokeTokens } from '../../src/accounts/tokens.ts';
import { ReportService } from '../../src/mail/report-service.ts';
import { maxRows } from '../../src/report/sheet.ts';
import { unsentMails } from '../../src/schedules/mails.ts';
import {
  answeredOf,
  listSchedules,
  type Schedule,
  storeSchedule,
  unsubscribe,
} from '../../src/schedules/schedules.ts';
import { event, load, loadRows } from '../support/events.ts';
import { useMailServer } from '../support/mail-server.ts';
import { digitsOf, linkSecret, tableOf, useMails } from '../support/mails.ts';
import { readers } from '../support/readers.ts';
import { useService } from '../support/service.ts';
import { useStore } from '../support/store.ts';

const db = useStore();
const service = useService(db, { LINK_SECRET: linkSecret });
const few = useService(db, { LINK_SECRET: linkSecret, RATE_LIMIT_REQUESTS: '2' });
const mailServer = useMailServer();
const { look, recipients, said, scheduled } = useMails(db, service, mailServer);
const proxies: Server[] = [];

afterEach(() => {
  for (const proxy of proxies.splice(0)) proxy.close();
});

/** What became of the mails of a schedule, and why, by attempt. */
const ledger = ({ id }: Schedule) =>
  select<{ attempt: number; state: string; error: string }>(
    db.store,
    'SELECT attempt, toString(state) AS state, error FROM mails FINAL WHERE schedule = {id:String} ORDER BY day, recipient, attempt',
    { id },
  );

const statesOf = async (schedule: Schedule) => (await ledger(schedule)).map(({ state }) => state);

const at6 = '2026-03-02T06:00:00Z';

test('the mail says what the API answers, digit for digit, with all rows as a workbook', async () => {
  const names = ['<b>"Sale" & more</b>', 'Größe 日本', '=1+1'];
  const account = 'shop';
  const lines = names.flatMap((campaign_id, n) =>
    ['desktop', 'mobile', 'tablet', 'tv'].flatMap((device, d) => [
      event({ advertiser_id: account, campaign_id, device, quantity: 1_234_567 * (n + 1) + d }),
      event({
        advertiser_id: account,
        campaign_id,
        device,
        event_type: 'referral',
        spend: `${800_000_000_000 + n * 10 + d}.654321`,
        confirmed: true,
      }),
    ]),
  );
  const earlier = lines.slice(0, 6).map((line) => ({
    ...line,
    event_id: `${line.event_id}-before`,
    event_time: '2026-02-28T12:00:00.000Z',
  }));
  expect((await load(db.store, [...lines, ...earlier])).rejectedRows).toBe(0);
  await scheduled({ account, body: { compare_to: 'previous_period' } });
  expect(await look(at6)).toBe(0);
  const [mail] = mailServer.mails;
  if (!mail) throw new Error('no mail came');

  const body = {
    start_time: '2026-03-01',
    end_time: '2026-03-01',
    compare_to: 'previous_period',
    totals: true,
    order_by: [{ field: 'spent', direction: 'desc' }],
  };
  const answer = await service.post('/v1/campaigns/breakdowns/device', account, body);
  const { rows, totals } = Object(parse(await answer.text())).result;
  const figures: string[][] = rows.map((row: object) => Object.values(row).map(String));
  expect(figures).toHaveLength(12);
  expect(tableOf(mail, 0).map(([, value = '']) => digitsOf(value, 'en-GB'))).toEqual(
    Object.values(totals).map(String),
  );
  const [head, ...shown] = tableOf(mail, 1);
  expect(head?.slice(0, 5)).toEqual(['Campaign', 'Device', 'CPA', 'CPA before', 'CPA change']);
  const read = shown.map((row) => row.map((cell, n) => (n < 2 ? cell : digitsOf(cell, 'en-GB'))));
  expect(read).toEqual(figures.slice(0, 10).map((row) => row.slice(2)));
  expect(mail.text).toContain(shown[0]?.[0]);

  expect(mail.subject).toBe('Campaigns by device, 1 Mar 2026');
  expect(mail.from?.text).toBe('"Reports: Acme (EU)" <reports@example.com>');
  expect(mail.text).toContain('All days are confirmed: these figures are final.');
  expect(mail.text).toContain('Compared with 28 Feb 2026.');
  expect(mail.text).not.toContain('late');
  expect(mail.html).not.toContain('<b>');
  const [file] = mail.attachments;
  expect(file?.filename).toBe('campaigns_device_2026-03-01_2026-03-01.xlsx');
  const sheet = await readers.xlsx(file?.content ?? Buffer.of());
  const byName = (all: readonly (readonly string[])[]) => all.map((row) => row.slice(0, 4).join()).toSorted();
  expect(byName(sheet.rows.slice(0, -1))).toEqual(byName(figures));
  // The link in the mail opens the same file without a token.
  const [, link = ''] = /Download all rows: (\S+)/.exec(mail.text ?? '') ?? [];
  const linked = await readers.xlsx(Buffer.from(await (await fetch(link)).arrayBuffer()));
  expect(linked).toEqual(sheet);
});

test('a report waits until its days are confirmed, and says so when they are not in time', async () => {
  const account = 'waits';
  await load(db.store, [event({ advertiser_id: account, event_type: 'referral', spend: '2.5' })]);
  const early = await scheduled({ account, waitHours: 24, attach: 'csv' });
  await look(at6);
  await look('2026-03-03T05:59:59Z');
  expect(mailServer.mails).toEqual([]);
  expect(await statesOf(early)).toEqual([]);
  await look('2026-03-03T06:00:00Z');
  const [provisional] = mailServer.mails;
  expect(provisional?.subject).toBe('Campaigns by device, 1 Mar 2026 (provisional)');
  expect(provisional?.text).toContain('Provisional: money may still change on 1 Mar 2026.');
  expect(provisional?.text).toContain(
    'it was due on 2 Mar 2026, 06:00 and was sent on 3 Mar 2026, 06:00 (UTC)',
  );
  expect(provisional?.attachments[0]?.content.toString()).toMatch(
    /^"start_time",.*\n"2026-03-01",.*,2\.5\n$/,
  );

  const later = await scheduled({ account, waitHours: 24 });
  mailServer.mails.length = 0;
  await loadRows(db.store, 'confirmations', [[account, '2026-03-01']]);
  await look(at6);
  expect(mailServer.mails.map(({ text }) => /.* final/.exec(text ?? '')?.[0])).toEqual([
    'All days are confirmed: these figures are final',
  ]);
  expect(await statesOf(later)).toEqual(['sent']);
});

test('days without figures are not called final, because they may still come', async () => {
  const account = 'late-loads';
  await load(db.store, [event({ advertiser_id: account, event_time: '2026-02-27T12:00:00.000Z' })]);
  await scheduled({ account, every: 'month', period: 'last_month', since: new Date('2026-03-01T00:00:00Z') });
  await scheduled({ account });
  await look(at6);
  expect(mailServer.mails.map(({ text }) => /Provisional: .*/.exec(text ?? '')?.[0])).toEqual([
    'Provisional: there are no figures after 27 Feb 2026 yet.',
    'Provisional: there are no figures of these days yet.',
  ]);
});

test('the title of a report by week says so', async () => {
  await scheduled({
    account: 'by-week',
    every: 'month',
    period: 'last_month',
    report: 'campaigns/device_date',
    body: { time_grain: 'week' },
    since: new Date('2026-03-01T00:00:00Z'),
  });
  await look(at6);
  const [mail] = mailServer.mails;
  expect(mail?.subject).toMatch(/^Campaigns by device and week, /);
});

test('of several senders one sends each mail, and once', async () => {
  const to = ['a', 'b', 'c', 'd'].map((name) => `${name}@example.com`);
  const schedule = await scheduled({ to });
  await Promise.all([look(at6), look(at6), look(at6)]);
  await look('2026-03-02T06:01:00Z');
  expect(recipients().toSorted()).toEqual(to);
  expect(await statesOf(schedule)).toEqual(['sent', 'sent', 'sent', 'sent']);
});

test('before each mail the schedules of its account are listed, and not those of all', async () => {
  const schedules = [await scheduled(), await scheduled()];
  const asked = vi.spyOn(db.store, 'query');
  await look(at6);
  const accounts = asked.mock.calls.flatMap(([{ query, query_params }]) =>
    query.includes('FROM schedules AS s') ? query_params?.account : [],
  );
  expect(accounts).toEqual(['', ...schedules.map(({ account }) => account)]);
});

test('what was missed is sent when a sender is back, and says that it is late', async () => {
  await scheduled();
  await look('2026-03-04T08:00:00Z');
  expect(mailServer.mails.map(({ subject }) => subject)).toEqual([
    'Campaigns by device, 1 Mar 2026 (provisional)',
    'Campaigns by device, 2 Mar 2026 (provisional)',
    'Campaigns by device, 3 Mar 2026 (provisional)',
  ]);
  for (const { text } of mailServer.mails) expect(text).toContain('This mail comes late');
});

test('a server that is busy is asked again, with longer pauses, and one that refuses a recipient is not', async () => {
  const schedule = await scheduled();
  mailServer.answer({ code: 451, at: 'recipient' }, { code: 452, at: 'end' });
  expect(await look(at6)).toBe(1);
  expect(await look('2026-03-02T06:00:59Z')).toBe(0);
  expect(await look('2026-03-02T06:01:00Z')).toBe(1);
  expect(await look('2026-03-02T06:02:59Z')).toBe(0);
  expect(await look('2026-03-02T06:03:00Z', { smtpUrl: 'smtp://127.0.0.1:1' })).toBe(1);
  expect(await look('2026-03-02T06:07:00Z')).toBe(0);
  expect(await statesOf(schedule)).toEqual(['delayed', 'delayed', 'delayed', 'sent']);
  expect((await ledger(schedule))[2]?.error).toContain('the mail server: connect ECONNREFUSED');

  const refused = await scheduled();
  mailServer.answer({ code: 550, at: 'recipient' });
  expect(await look(at6)).toBe(1);
  expect(await look('2026-03-02T09:00:00Z')).toBe(0);
  expect(await statesOf(refused)).toEqual(['refused']);
});

test('a mail of a month is tried for two weeks', async () => {
  const schedule = await scheduled({ every: 'month', since: new Date('2026-02-02T00:00:00Z') });
  mailServer.answer({ code: 451, at: 'recipient' });
  expect(await look('2026-03-01T06:00:00Z')).toBe(1);
  expect(await look('2026-03-15T06:00:01Z')).toBe(0);
  expect(await statesOf(schedule)).toEqual(['delayed']);
  const told = await unsentMails(db.store, new Date('2026-03-15T06:00:01Z'), 'UTC');
  expect(told).toEqual({ oldest: Number.NaN, stuck: 1 });

  // An order has one attempt then.
  mailServer.answer({ code: 451, at: 'recipient' });
  said.length = 0;
  expect(await look('2026-03-16T06:00:00Z', { again: schedule.id })).toBe(1);
  expect(said).toEqual([expect.stringContaining('the mail server: ')]);
  expect(await look('2026-03-16T07:00:00Z')).toBe(0);
  expect(await look('2026-03-16T08:00:00Z', { again: schedule.id })).toBe(0);
  expect(await statesOf(schedule)).toEqual(['delayed', 'delayed', 'sent']);
});

test('a mail that the server may have taken is not sent again, unless somebody says so', async () => {
  const schedule = await scheduled();
  mailServer.answer('leaves');
  expect(await look(at6)).toBe(1);
  await look('2026-03-02T12:00:00Z');
  expect(await statesOf(schedule)).toEqual(['unknown']);
  expect(mailServer.mails).toHaveLength(1);
  await look('2026-03-02T12:00:00Z', { again: 'another' });
  expect(mailServer.mails).toHaveLength(1);
  await look('2026-03-02T12:00:00Z', { again: schedule.id });
  const ids = mailServer.mails.map(({ messageId }) => messageId);
  expect([ids.length, new Set(ids).size]).toEqual([2, 1]);
  expect(await statesOf(schedule)).toEqual(['unknown', 'sent']);
  said.length = 0;
  expect(await look('2026-03-02T12:00:00Z', { again: schedule.id })).toBe(0);
  expect(said).toEqual([`no mail of ${schedule.id} is to be sent again`]);
});

test('a mail server has ten minutes to say that it has the mail', async () => {
  await scheduled();
  const waits = vi.spyOn(Socket.prototype, 'setTimeout');
  try {
    expect(await look(at6)).toBe(0);
    const port = Number(new URL(mailServer.url).port);
    const ofSender = waits.mock.calls.filter(
      (_, n) => (waits.mock.contexts[n] as Socket).remotePort === port,
    );
    const times = ofSender.map(([ms]) => ms);
    expect(times).toContain(600_000);
    expect(times).not.toContain(60_000);
  } finally {
    waits.mockRestore();
  }
});

test('text and file of a mail may take an hour together, and a sender that died is waited for longer', async () => {
  const schedule = await scheduled();
  const fetched = vi.spyOn(globalThis, 'fetch');
  const times = vi.spyOn(AbortSignal, 'timeout');
  try {
    expect(await look(at6)).toBe(0);
    // That of Node gives up after 300 s.
    expect(fetched).not.toHaveBeenCalled();
    expect(times.mock.calls).toEqual([[3_600_000], [1_200_000]]);
  } finally {
    fetched.mockRestore();
    times.mockRestore();
  }
  await db.store.command({
    query: "ALTER TABLE mails UPDATE state = 'taken' WHERE schedule = {id:String}",
    query_params: { id: schedule.id },
    clickhouse_settings: { mutations_sync: '2' },
  });
  for (const [at, mails] of [
    ['2026-03-02T07:15:00Z', 1],
    ['2026-03-02T07:30:00Z', 2],
  ] as const) {
    await look(at, { again: schedule.id });
    expect(mailServer.mails).toHaveLength(mails);
  }
});

test('a service of reports that cannot be reached is named', async () => {
  await scheduled();
  expect(await look(at6, { serviceUrl: 'http://127.0.0.1:1' })).toBe(1);
  expect(said.join('\n')).toContain(
    'the service of reports does not answer, or broke off: connect ECONNREFUSED 127.0.0.1:1',
  );
});

test('a SERVICE_URL that redirects is named with where it leads to, without the link', async () => {
  const proxy = createServer((request, response) => {
    response.writeHead(301, { location: `https://reports.example.com${request.url}` }).end();
  });
  proxies.push(proxy);
  await once(proxy.listen(0, '127.0.0.1'), 'listening');
  await scheduled();
  const { port } = proxy.address() as AddressInfo;
  expect(await look(at6, { serviceUrl: `http://127.0.0.1:${port}` })).toBe(1);
  expect(said.join('\n')).toMatch(/answered 301: SERVICE_URL leads to https:\/\/reports\.example\.com(?!\/)/);
});

test('a report that cannot be read keeps no other one waiting, and is tried again', async () => {
  const wrong = await scheduled({ body: { metrics: ['clicks'] } });
  const right = await scheduled();
  expect(await look(at6)).toBe(1);
  expect(await statesOf(right)).toEqual(['sent']);
  expect(await statesOf(wrong)).toEqual(['delayed']);
  expect(said.join('\n')).toContain('the service of reports answered 400');
});

test('a token that is missing is named as what is wrong, and not ClickHouse', async () => {
  const { id } = await scheduled({ token: 'none' });
  expect(await look(at6)).toBe(1);
  expect(said).toEqual([
    `${id} of 2026-03-02 to anna@example.com: its token none is not there; trying again`,
  ]);
});

test('a schedule whose token was revoked has ended: nothing is tried, and nobody is told that a mail is late', async () => {
  const schedule = await scheduled();
  await revokeTokens(db.store, { id: schedule.token });
  expect(await look(at6)).toBe(0);
  expect(await statesOf(schedule)).toEqual([]);
  const [listed] = (await listSchedules(db.store)).filter(({ id }) => id === schedule.id);
  expect(listed?.state).toBe('ended');
  expect((await unsentMails(db.store, new Date(at6), 'UTC')).oldest).toBeNaN();
});

/** The address of a proxy before the service that does something with the first file it is asked for, and passes no tags on. */
async function meddling(meddle: (answer: ServerResponse) => Promise<void>): Promise<string> {
  let meddled = false;
  const proxy = createServer(async ({ url = '' }, outgoing) => {
    const isFile = url.includes('.xlsx');
    if (isFile && !meddled) {
      meddled = true;
      await meddle(outgoing);
    }
    if (outgoing.headersSent) return;
    const answer = await fetch(service.url + url);
    const headers = [...answer.headers].filter(([name]) =>
      /^(adtally-|content-(type|disposition))/.test(name),
    );
    outgoing
      .writeHead(answer.status, Object.fromEntries(headers))
      .end(Buffer.from(await answer.arrayBuffer()));
  });
  proxies.push(proxy);
  proxy.listen(0, '127.0.0.1');
  await once(proxy, 'listening');
  return `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`;
}

test('a file that breaks off makes no mail, and is asked for again', async () => {
  const schedule = await scheduled();
  const serviceUrl = await meddling(async (answer) => {
    answer.writeHead(200, { 'content-length': 1_000_000 });
    answer.write(Buffer.alloc(300_000));
    setTimeout(() => answer.destroy(), 500);
  });
  expect(await look(at6, { serviceUrl })).toBe(1);
  expect(said.join('\n')).toContain('the service of reports does not answer, or broke off: ');
  expect(await look('2026-03-02T06:01:00Z', { serviceUrl })).toBe(0);
  expect(await statesOf(schedule)).toEqual(['delayed', 'sent']);
  expect(mailServer.mails).toHaveLength(1);
  const sheet = await readers.xlsx(mailServer.mails[0]?.attachments[0]?.content ?? Buffer.of());
  expect(sheet.columns).toContain('spent');
});

/** The address of a proxy before the mail server that does something with each connection. */
async function wayToMailServer(meddle: (socket: Socket, server: Socket) => void): Promise<string> {
  const proxy = createTcpServer((socket) => {
    const server = connect(Number(new URL(mailServer.url).port), '127.0.0.1');
    socket.on('close', () => server.destroy());
    socket.pipe(server).pipe(socket);
    meddle(socket, server);
  });
  proxies.push(proxy);
  await once(proxy.listen(0, '127.0.0.1'), 'listening');
  return `smtp://127.0.0.1:${(proxy.address() as AddressInfo).port}`;
}

test('a mail server gets the whole file also where the service has left before it greets', async () => {
  await scheduled();
  const file = Buffer.alloc(16 << 20, 'a');
  let left = () => {};
  const serviceUrl = await meddling(async (answer) => {
    left = () => void answer.destroy();
    answer.writeHead(200, { 'content-length': file.length }).end(file);
  });
  const smtpUrl = await wayToMailServer(() => left());
  expect(await look(at6, { serviceUrl, smtpUrl })).toBe(0);
  expect(mailServer.mails[0]?.attachments[0]?.content.length).toBe(file.length);
});

test('with a limit the text has the rows of the file, and not those with most money', async () => {
  const account = 'limited';
  const spends = { a: '1.5', b: '2.5' };
  await load(
    db.store,
    Object.entries(spends).map(([campaign_id, spend]) =>
      event({ advertiser_id: account, campaign_id, event_type: 'referral', spend }),
    ),
  );
  await scheduled({ account, body: { limit: 1 }, attach: 'csv' });
  expect(await look(at6)).toBe(0);
  const [mail] = mailServer.mails;
  expect(mail && tableOf(mail, 1).map(([campaign]) => campaign)).toEqual(['Campaign', 'a']);
  expect(mail?.attachments[0]?.content.toString()).toMatch(/^"start_time",.*\n[^\n]*,"a",[^\n]*\n$/);
});

test('the link to a workbook that would have more rows than a sheet is one to CSV', async () => {
  const schedule = await scheduled();
  const range = { start: '2026-03-01', end: '2026-03-01' };
  const reports = new ReportService(service.url, new Links(() => linkSecret), 0);
  const linkOf = (rowCount: string) =>
    reports.link({ schedule, range, maker: { id: schedule.token, hash: 'hash' } }, { rowCount });
  expect(linkOf(`${maxRows}`)).toContain('/device.xlsx?');
  expect(linkOf(`${maxRows + 1}`)).toContain('/device.csv?');
});

test('a file of more than 20 MB is not in its mail, which has the link', async () => {
  await scheduled();
  let sent = 0;
  const serviceUrl = await meddling(async (answer) => {
    answer.writeHead(200);
    const send = () => {
      while (!answer.destroyed && answer.write(Buffer.alloc(65_536))) sent += 65_536;
    };
    answer.on('drain', send);
    send();
  });
  expect(await look(at6, { serviceUrl })).toBe(0);
  expect(mailServer.mails[0]?.attachments).toEqual([]);
  expect(mailServer.mails[0]?.text).toMatch(/ rows? and is too large for a mail\. .*\nDownload all rows: /);
  expect(sent).toBeLessThan(100_000_000);
});

test('a mail is tried again where the mail server breaks off in the middle of its file', async () => {
  const schedule = await scheduled();
  const serviceUrl = await meddling(async (answer) => void answer.writeHead(200).end(Buffer.alloc(16 << 20)));
  const smtpUrl = await wayToMailServer((socket) => {
    socket.on('data', () => {
      if (socket.bytesRead > 1 << 20) socket.resetAndDestroy();
    });
  });
  expect(await look(at6, { serviceUrl, smtpUrl })).toBe(1);
  expect(await statesOf(schedule)).toEqual(['delayed']);

  // A question fits into the memory of the connection, and has not left before the recipient is known.
  const asking = await scheduled({ token: '', madeBy: 'person jo' });
  const early = await wayToMailServer((socket, server) => {
    socket.on('data', async (data) => {
      if (!String(data).includes('RCPT TO')) return;
      server.unpipe(socket);
      for (let turn = 0; turn < 100; turn++) await setImmediate();
      socket.resetAndDestroy();
    });
  });
  await look(at6, { smtpUrl: early });
  expect(await statesOf({ ...asking, id: answeredOf(asking) })).toEqual(['delayed']);
});

test('a mail is tried again where the mail server takes longer than 20 minutes for its file', async () => {
  const schedule = await scheduled();
  const serviceUrl = await meddling(async (answer) => void answer.writeHead(200).end(Buffer.alloc(16 << 20)));
  const { timeout } = AbortSignal;
  const times = vi.spyOn(AbortSignal, 'timeout');
  times.mockImplementation((ms) => timeout.call(AbortSignal, ms === 1_200_000 ? 500 : ms));
  try {
    const smtpUrl = await wayToMailServer((socket) => {
      socket.on('data', () => {
        if (socket.bytesRead > 1 << 20) socket.pause();
      });
    });
    expect(await look(at6, { serviceUrl, smtpUrl })).toBe(1);
  } finally {
    times.mockRestore();
  }
  expect(await ledger(schedule)).toMatchObject([
    { state: 'delayed', error: 'the mail server: it takes too long for a whole mail' },
  ]);
});

test('a mail that was sent is said to be sent, and not tried again, where that cannot be noted', async () => {
  const schedule = await scheduled({ to: ['anna@example.com', 'bo@example.com'] });
  const rename = (from: string, to: string) => db.store.command({ query: `RENAME TABLE ${from} TO ${to}` });
  const serviceUrl = await meddling(async () => void (await rename('mails', 'mails_away')));
  expect(await look(at6, { serviceUrl })).toBe(2);
  await rename('mails_away', 'mails');
  expect(said).toEqual([
    expect.stringContaining('anna@example.com: sent; ClickHouse could not note this: '),
    expect.stringContaining('bo@example.com: ClickHouse: '),
  ]);
  expect(await look('2026-03-02T12:00:00Z')).toBe(0);
  expect(await statesOf(schedule)).toEqual(['taken', 'sent']);
  expect(mailServer.mails).toHaveLength(2);
});

test('text and file are of one state of the store, also where events come in between', async () => {
  const account = 'changes';
  const spent = (spend: string) => event({ advertiser_id: account, event_type: 'referral', spend });
  await load(db.store, [spent('1')]);
  await scheduled({ account });
  const serviceUrl = await meddling(async () => void (await load(db.store, [spent('2')])));
  expect(await look(at6, { serviceUrl })).toBe(0);
  const [mail] = mailServer.mails;
  expect(mail?.text).toContain('Spent: 3.00\n');
  const { columns, rows } = await readers.xlsx(mail?.attachments[0]?.content ?? Buffer.of());
  expect(rows.map((row) => row[columns.indexOf('spent')])).toEqual(['3', '3']);
});

test('one click ends the mails to a recipient, a look at the link does not, and a forged link is refused', async () => {
  const schedule = await scheduled({ to: ['anna+ads@example.com', 'bo@example.com'] });
  await look(at6);
  const mail = mailServer.mails.find(({ text }) => text?.includes('anna'));
  const link = listLink(mail);
  expect(headerOf(mail, 'list-unsubscribe-post')).toBe('List-Unsubscribe=One-Click');
  const page = await fetch(link);
  expect(await page.text()).toContain('<form method="post">');
  await look('2026-03-03T06:00:00Z');
  expect(mailServer.mails).toHaveLength(4);

  const click = (address: string) =>
    fetch(address, {
      method: 'POST',
      headers: { 'content-type': 'application/x-www-form-urlencoded' },
      body: 'List-Unsubscribe=One-Click',
    });
  expect((await click(link.replace('anna', 'bo'))).status).toBe(404);
  const done = await click(link);
  expect([done.status, await done.text()]).toEqual([
    200,
    expect.stringContaining('anna+ads@example.com gets no more'),
  ]);
  await look('2026-03-04T06:00:00Z');
  expect(recipients().slice(4)).toEqual(['bo@example.com']);
  await unsubscribe(db.store, schedule.id, 'bo@example.com');
  await look('2026-03-05T06:00:00Z');
  expect(mailServer.mails).toHaveLength(5);

  const links = mailServer.mails.map(listLink);
  const clickedAtFew = async (of: string) => {
    const own = links.find((each) => each.includes(`to=${of}`)) ?? '';
    return (await click(own.replace(service.url, few.url))).status;
  };
  // Each answer is a row. Others at the same address are not limited with the one who sends many.
  for (const status of [200, 200, 429]) expect(await clickedAtFew('anna')).toBe(status);
  expect(await clickedAtFew('bo')).toBe(200);
});

test('who unsubscribes, and whose schedule is paused, while mails before are sent gets none', async () => {
  const to = ['anna@example.com', 'bo@example.com'];
  const left = await scheduled({ to });
  const bo = () => unsubscribe(db.store, left.id, 'bo@example.com');
  expect(await look(at6, { serviceUrl: await meddling(bo) })).toBe(0);
  expect(await statesOf(left)).toEqual(['sent']);

  const paused = await scheduled({ to });
  const pause = () => storeSchedule(db.store, { ...paused, state: 'paused' });
  expect(await look(at6, { serviceUrl: await meddling(pause) })).toBe(0);
  expect(await statesOf(paused)).toEqual(['sent']);
  expect(recipients()).toEqual(['anna@example.com', 'anna@example.com']);

  const again = await scheduled({ to });
  mailServer.answer({ code: 550, at: 'recipient' }, { code: 550, at: 'recipient' });
  expect(await look(at6)).toBe(2);
  const pauseAgain = () => storeSchedule(db.store, { ...again, state: 'paused' });
  expect(await look(at6, { again: again.id, serviceUrl: await meddling(pauseAgain) })).toBe(0);
  expect(await statesOf(again)).toEqual(['refused', 'sent', 'refused']);
});

function headerOf(mail: ParsedMail | undefined, name: string): string {
  const { line = '' } = mail?.headerLines.find(({ key }) => key === name) ?? {};
  return line.replace(/^[^:]*:\s*/, '');
}

const listLink = (mail: ParsedMail | undefined) => headerOf(mail, 'list-unsubscribe').replace(/^<|>$/g, '');
