import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { select } from '../../clickhouse/client.ts';
import { AdtallyError, Sender } from '../../clients/typescript/src/index.ts';
import { ends, useBrokenServer } from '../support/broken-server.ts';
import { event } from '../support/events.ts';
import { checkout } from '../support/process.ts';
import { useReceiver } from '../support/receiver.ts';
import { useStore } from '../support/store.ts';

const db = useStore();
const receiver = useReceiver(db);
const server = useBrokenServer();
const received = { load: '1', accepted: 1, rejected: 0, duplicates: 0, reasons: [], visible_at: '' };

interface Sending {
  readonly url: string;
  readonly token: string;
  readonly events: readonly object[];
  readonly key?: string;
  readonly from?: { readonly channel: string; readonly offset: number };
  readonly tries?: number;
}

const env = {
  PATH: process.env.PATH,
  PYTHONPATH: `${checkout}clients/python`,
  PYTHONDONTWRITEBYTECODE: '1',
  PYTHONUTF8: '1',
};

const clients = {
  typescript: async ({ url, token, events, key, from, tries = 8 }: Sending) => {
    const sender = new Sender({ url: `${url}/`, token, tries });
    return sender
      .send(events as Record<string, unknown>[], { ...(key !== undefined && { key }), ...(from && { from }) })
      .catch((error) => {
        if (!(error instanceof AdtallyError)) throw error;
        const { status, code, committed, records } = error;
        return { status, code, committed, records };
      });
  },
  python: async (sending: Sending) => {
    const program = [
      'import json, sys',
      'from adtally import AdtallyError, Sender',
      'to = json.loads(sys.argv[1])',
      'try:',
      '    print(json.dumps(Sender(to["url"], to["token"], tries=to.get("tries", 8)).send(to["events"], key=to.get("key"), **to.get("from", {})).__dict__))',
      'except AdtallyError as error:',
      '    print(json.dumps({"status": error.status, "code": error.code, "committed": error.committed, "records": error.records}))',
    ].join('\n');
    // It reads what JSON.stringify has no word for.
    const given = JSON.stringify(sending).replaceAll(':null', ':NaN');
    const { stdout } = await promisify(execFile)('python3', ['-c', program, given], { env });
    return JSON.parse(stdout);
  },
};

test.each(Object.entries(clients))('%s sends events, and the same ones again', async (name, send) => {
  const events = [event({ advertiser_id: name }), event({ advertiser_id: name, creative_id: 'größer' })];
  const { url } = receiver;
  const to = { url, token: await receiver.token(name), events, key: 'k' };
  const first = await send(to);
  expect(first).toMatchObject({ accepted: 2, rejected: 0, duplicates: 0 });
  expect(await send(to)).toEqual(first);
  expect(await send({ ...to, events: [event()] })).toMatchObject({
    status: 422,
    code: 'idempotency_key_reused',
  });
  const [row] = await select<{ n: number }>(
    db.store,
    'SELECT toUInt32(count()) AS n FROM events WHERE advertiser_id = {name:String}',
    { name },
  );
  expect(row?.n).toBe(2);
});

test.each(Object.entries(clients))(
  '%s: what is no number is rejected, not loaded as 0, without an id, or with that of others',
  async (name, send) => {
    const to = { url: receiver.url, token: await receiver.token(`NaN of ${name}`) };
    const fields = ['spend', 'quantity', 'campaign_id', 'creative_id', 'event_id'];
    const events = [
      event(),
      { ...event(), spend: Number.NEGATIVE_INFINITY },
      ...fields.map((field) => ({ ...event(), [field]: Number.NaN })),
    ];
    expect(await send({ ...to, events })).toMatchObject({ accepted: 1, rejected: 6 });
  },
);

test.each(Object.entries(clients))('%s sends pieces of a stream', async (name, send) => {
  const events = Array.from({ length: 5 }, () => event({ advertiser_id: `stream of ${name}` }));
  const to = { url: receiver.url, token: await receiver.token(name) };
  const piece = (offset: number, end: number) =>
    send({ ...to, events: events.slice(offset, end), from: { channel: 'c', offset } });
  expect(await piece(0, 3)).toMatchObject({ accepted: 3, committed: 3 });
  expect(await piece(2, 4)).toMatchObject({ accepted: 1, committed: 4 });
  expect(await piece(5, 5)).toMatchObject({ status: 409, code: 'offset_refused', committed: 4 });
});

test.each(Object.entries(clients))('%s tells how many records have to come in one body', async (_, send) => {
  server.answers((response) => {
    response.writeHead(409, { 'content-type': 'application/problem+json' });
    response.end('{"code":"offset_refused","committed":4,"records":20}');
  });
  const piece = { events: [event()], from: { channel: 'c', offset: 4 } };
  expect(await send({ url: server.url, token: 'adi_x', ...piece })).toEqual({
    status: 409,
    code: 'offset_refused',
    committed: 4,
    records: 20,
  });
});

test('typescript sends nothing of a text, nor of what is no object', async () => {
  server.answers(ends(JSON.stringify(received)));
  const sender = new Sender({ url: server.url, token: 'adi_x' });
  for (const events of ['{}', ['{}'], [null], [[event()]]]) {
    await expect(sender.send(events as unknown as [])).rejects.toThrow(
      new TypeError('an event is an object: send a list of events, or bytes'),
    );
  }
  expect(server.requests).toBe(0);
});

test('python sends bytes of every kind, and nothing of a text, of one event or of a value of bytes', async () => {
  const lengths: unknown[] = [];
  server.answers((response) => {
    lengths.push(response.req.headers['content-length']);
    ends(JSON.stringify(received))(response);
  });
  const program = [
    'import sys',
    'from adtally import Sender',
    'sender = Sender(sys.argv[1], "adi_x")',
    'from types import MappingProxyType',
    'for body in (b"{}", bytearray(b"{}"), memoryview(b"{}"), [MappingProxyType({})]): sender.send(body)',
    'for events in ("{}", {"impressions": 1}, ["{}"], [None], [{"campaign_id": b"c1"}]):',
    '    try: sender.send(events)',
    '    except TypeError as error: print(error)',
  ].join('\n');
  const { stdout } = await promisify(execFile)('python3', ['-c', program, server.url], { env });
  expect(stdout.trim().split('\n')).toEqual([
    ...['str', 'str', 'str', 'NoneType'].map(
      (type) => `an event is a dict, not ${type}: send a list of events, or bytes`,
    ),
    'a value of an event is bytes: decode it',
  ]);
  expect(lengths).toEqual(['2', '2', '2', '3']);
});
