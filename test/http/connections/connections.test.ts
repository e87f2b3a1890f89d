import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { afterEach, expect, test } from 'vitest';
import { useService } from '../../support/service.ts';
import { useStore } from '../../support/store.ts';
import { receivedAnswers } from '../received-answers.ts';

const most = 20;
const service = useService(useStore(), { MAX_CONNECTIONS: `${most}`, SEND_TIMEOUT_SECONDS: '1' });
const opened: Socket[] = [];
afterEach(() => {
  for (const socket of opened.splice(0)) socket.destroy();
});

function open(localAddress = '127.0.0.1'): Socket {
  const { hostname, port } = new URL(service.url);
  const socket = connect({ host: hostname, port: Number(port), localAddress });
  // Whoever is cut off may be told so by a reset.
  socket.on('error', () => undefined);
  opened.push(socket);
  return socket;
}

async function allOf(socket: Socket): Promise<string> {
  let answer = '';
  socket.on('data', (piece) => {
    answer += piece.toString('latin1');
  });
  await once(socket, 'close');
  return answer;
}

const content = '{"start_time":"2025-01-01","end_time":"2025-01-31"}';

/** Messages of every form, and the status of the answer to each. */
async function everyForm(): Promise<[message: string, status: number][]> {
  const post = `POST /v1/campaigns HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${await service.token('a')}\r\nContent-Type: application/json\r\n`;
  const lines = `${content.replace(',', ',\r\n\r\n')}\n\r\n`;
  const chunk = `${content.length.toString(16)}\r\n${content}\r\n`;
  return [
    [`${post}Content-Length: ${content.length}\r\n\r\n${content}`, 200],
    [`${post}Content-Length: ${lines.length}\r\n\r\n${lines}`, 200],
    [`${post}Transfer-Encoding: chunked\r\n\r\n${chunk}0\r\n\r\n`, 200],
    [`${post}Transfer-Encoding: chunked\r\n\r\n${chunk}0\r\nX-Trailer: y\r\n\r\n`, 200],
    [`${post}Expect: 100-continue\r\nContent-Length: ${content.length}\r\n\r\n${content}`, 200],
    [`GET /nowhere HTTP/1.1\r\nHost: x\r\nContent-Length: 6\r\n\r\n\r\n\r\n\r\n`, 404],
    [`${post}Content-Length: 600000\r\n\r\n${' '.repeat(600_000)}`, 413],
    ['\r\n\r\nGET /healthz HTTP/1.0\r\nConnection: keep-alive\r\n\r\n', 200],
    ['GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n', 200],
  ];
}

test.each([1, 7, 100, 100_000])(
  'requests of every form, sent in pieces of %i bytes without waiting, are answered each, in order',
  async (bytes) => {
    const forms = await everyForm();
    const [close] = forms.slice(-1);
    // As many as may wait, the one that closes the connection last.
    for (let first = 0; first < forms.length - 1; first += 3) {
      const some = [...forms.slice(0, -1).slice(first, first + 3), ...(close ? [close] : [])];
      const sent = some.map(([message]) => message).join('');
      const socket = open().setNoDelay();
      const answer = allOf(socket);
      for (let at = 0, size = bytes; at < sent.length; at += size) {
        // The blanks of the body that is too large come faster: so many writes would take longer than a request may.
        size = Math.max(bytes, / {0,1000}/y.exec(sent.slice(at, at + 1_000))?.[0].length ?? 0);
        await new Promise((resolve) => socket.write(sent.slice(at, at + size), resolve));
      }
      expect(receivedAnswers(await answer).map(({ status }) => status)).toEqual(
        some.map(([, status]) => status),
      );
    }
  },
);

test('what follows an answer that closes the connection is not read', async () => {
  const [close = ''] = (await everyForm()).map(([message]) => message).slice(-1);
  const socket = open();
  socket.write(close + close);
  expect(receivedAnswers(await allOf(socket))).toHaveLength(1);
});

test('a caller who opens more connections than there may be shuts out itself alone', async () => {
  const honest = open();
  const ask = async () => {
    honest.write('GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n');
    const [answer] = await once(honest, 'data');
    expect(String(answer)).toMatch(/^HTTP\/1.1 200 /);
  };
  await ask();
  const others = Array.from({ length: 3 * most }, () => open('127.0.0.66').resume());
  const closed = Promise.all(others.slice(0, 2 * most).map((socket) => once(socket, 'close')));
  await Promise.all(others.map((socket) => once(socket, 'connect')));
  await closed;
  await ask();
  // A newcomer, too.
  expect((await fetch(`${service.url}/healthz`, { headers: { connection: 'close' } })).status).toBe(200);
  expect(others.filter(({ closed }) => !closed).length).toBeLessThanOrEqual(most);
});
