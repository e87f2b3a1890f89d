import { createServer, connect as dial, type Server, type Socket } from 'node:net';
import { text } from 'node:stream/consumers';
import { afterEach, expect, test } from 'vitest';
import { Reader } from '../../clickhouse/reader.ts';
import { isTransient } from '../../clickhouse/retry.ts';
import { useStore } from '../support/store.ts';

const store = useStore();
const readers: Reader[] = [];
const servers: Server[] = [];

afterEach(() => {
  for (const reader of readers.splice(0)) reader.close();
  for (const server of servers.splice(0)) server.close();
});

function reader(url = store.address.url, idleTimeoutMs = 10_000): Reader {
  const opened = new Reader({ ...store.address, url }, idleTimeoutMs);
  readers.push(opened);
  return opened;
}

const statement = (query: string, params: Record<string, string> = {}, settings = {}) => ({
  query,
  params,
  settings,
});

/** Passes connections on to ClickHouse; `onRequest` sees each piece a caller sends and may keep it. */
async function proxy(onRequest: (caller: Socket, nth: number, data: Buffer) => boolean): Promise<string> {
  const { hostname, port } = new URL(store.address.url);
  let seen = 0;
  const server = createServer((caller) => {
    const upstream = dial(Number(port), hostname);
    for (const socket of [caller, upstream]) socket.on('error', () => undefined);
    caller.on('data', (data) => {
      seen++;
      if (onRequest(caller, seen, data)) upstream.write(data);
    });
    upstream.on('data', (data) => caller.write(data));
    caller.once('close', () => upstream.destroy());
  });
  servers.push(server);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('no port');
  return `http://127.0.0.1:${address.port}`;
}

test('a parameter arrives as it is, whatever its text', async () => {
  const value = 'é \u0001\t\n\r\0\\ \\N \\t &=%?#+ {x:String} \'quoted\' "also"';
  const rows = await reader().rows(statement('SELECT {value:String} AS value', { value }));
  expect(rows).toEqual([{ value }]);
});

test.each([
  ['many', Array.from({ length: 2_000 }, (_, n) => `é \t\n\r\n\0\\ & %3D "it's" ${n}`), '--'],
  ['short as a text and long in an address', ['x'], '広'.repeat(900)],
])(
  'parameters that are too long for the address of a load balancer arrive, too: %s',
  async (_, values, one) => {
    let longest = 0;
    const url = await proxy((_, nth, data) => {
      if (nth === 1) longest = data.indexOf('\r\n\r\n');
      return true;
    });
    const rows = await reader(url).rows({
      ...statement('SELECT arrayJoin({values:Array(String)}) AS value, {one:String} AS one'),
      params: { values, one },
    });
    expect(rows).toEqual(values.map((value) => ({ value, one })));
    expect(longest).toBeGreaterThan(0);
    expect(longest).toBeLessThan(1_000);
  },
);

test.each(['identity', 'gzip', 'br', 'zstd'])('a refusal in %s is read', async (coding) => {
  const asked = reader().stream(
    statement("SELECT throwIf(1, 'the reason')", {}, { enable_http_compression: 1 }),
    {
      headers: { 'Accept-Encoding': coding },
    },
  );
  await expect(asked).rejects.toMatchObject({
    code: '395',
    type: 'FUNCTION_THROW_IF_VALUE_IS_NON_ZERO',
    message: expect.stringContaining('the reason'),
  });
});

test('a connection that was closed just as it is used again is replaced', async () => {
  const url = await proxy((caller, nth) => {
    // The first request is answered; the second meets a reset, as when the server gives up an idle connection.
    if (nth !== 2) return true;
    caller.resetAndDestroy();
    return false;
  });
  const kept = reader(url);
  expect(await kept.rows(statement('SELECT 1 AS one'))).toEqual([{ one: 1 }]);
  expect(await kept.rows(statement('SELECT 2 AS two'))).toEqual([{ two: 2 }]);
});

test('idle connections that were closed together are replaced by a new one', async () => {
  const used = new Set<Socket>();
  const url = await proxy((caller) => {
    if (!used.has(caller)) return used.add(caller).size > 0;
    caller.resetAndDestroy();
    return false;
  });
  const kept = reader(url);
  const asked = ['SELECT 1, sleep(0.2)', 'SELECT 2, sleep(0.2)', 'SELECT 3, sleep(0.2)'].map((query) =>
    kept.rows(statement(query)),
  );
  await Promise.all(asked);
  expect(used.size).toBe(3);
  expect(await kept.rows(statement('SELECT 4 AS four'))).toEqual([{ four: 4 }]);
});

test('a new connection that is reset is an error: nobody is asked again and again', async () => {
  let requests = 0;
  const url = await proxy((caller) => {
    requests++;
    caller.resetAndDestroy();
    return false;
  });
  await expect(reader(url).rows(statement('SELECT 1'))).rejects.toMatchObject({ code: 'ECONNRESET' });
  expect(requests).toBe(1);
});

test('a server that hangs is given up, one that is slow is not', async () => {
  const silent = await proxy(() => false);
  const error: unknown = await reader(silent, 200)
    .rows(statement('SELECT 1'))
    .catch((thrown) => thrown);
  expect(error).toMatchObject({ message: 'ClickHouse sent nothing for 0.2 s' });
  expect(error instanceof Error && isTransient(error)).toBe(true);
  const slow = statement(
    'SELECT number, sleepEachRow(0.1) FROM numbers(40)',
    {},
    {
      max_block_size: 1,
      http_response_buffer_size: 1,
      wait_end_of_query: 0,
    },
  );
  const answer = await reader(undefined, 1_000).stream({ ...slow, query: `${slow.query} FORMAT TSV` });
  expect((await text(answer)).split('\n').length).toBe(41);
});

test('an aborted statement is given up before its first byte', async () => {
  const enough = new AbortController();
  const asked = reader().rows(statement('SELECT sleep(3)'), { signal: enough.signal });
  setTimeout(() => enough.abort(), 50);
  await expect(asked).rejects.toMatchObject({ name: 'AbortError' });
});

test('a statement that is aborted when its answer has just been read ends no process', async () => {
  const answers = Array.from({ length: 20 }, async (_, turn) => {
    const enough = new AbortController();
    const answer = await reader().stream(statement('SELECT 1 FORMAT TSV'), { signal: enough.signal });
    const pieces = answer[Symbol.asyncIterator]();
    expect(String((await pieces.next()).value)).toBe('1\n');
    for (let step = 0; step < turn % 4; step++) await undefined;
    enough.abort();
    await pieces.return?.();
  });
  await Promise.all(answers);
});

test('answers that arrive at the same time do not mix', async () => {
  const own = reader();
  const answers = ['a', 'b', 'c', 'd'].map(async (letter) => {
    const answer = await own.stream(
      statement(`SELECT repeat('${letter}', 1000) FROM numbers(10000) FORMAT TSVRaw`),
    );
    expect(await text(answer)).toBe(`${letter.repeat(1000)}\n`.repeat(10_000));
  });
  await Promise.all(answers);
});
