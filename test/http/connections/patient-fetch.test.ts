import { expect, test } from 'vitest';
import { patientFetch } from '../../../src/http/request/patient-fetch.ts';
import { breaksOff, useBrokenServer } from '../../support/broken-server.ts';

const server = useBrokenServer();
const never = new AbortController().signal;

test('an answer has its status, headers and body', async () => {
  server.answers((response) => response.writeHead(404, { 'x-of': 'it' }).end('none'));
  const answer = await patientFetch(server.url, { method: 'POST', body: '{}', signal: never });
  expect([answer.status, answer.ok, answer.headers.get('x-of'), await answer.text()]).toEqual([
    ...[404, false, 'it', 'none'],
  ]);
});

test('an answer that breaks off is an error for whoever reads it', async () => {
  server.answers(breaksOff('half'));
  const answer = await patientFetch(server.url, { method: 'GET', signal: never });
  await expect(answer.text()).rejects.toThrow();
});

test('whoever gives up is told why, before the answer begins and in its midst', async () => {
  const tired = () => {
    const giving = new AbortController();
    return { signal: giving.signal, end: () => giving.abort(new Error('nobody waits')) };
  };
  const { signal, end } = tired();
  server.answers(end);
  await expect(patientFetch(server.url, { method: 'GET', signal })).rejects.toThrow('nobody waits');
  const later = tired();
  server.answers((response) => void response.writeHead(200).write('half'));
  const answer = await patientFetch(server.url, { method: 'GET', signal: later.signal });
  later.end();
  await expect(answer.text()).rejects.toThrow();
});

test('a service that cannot be reached is named', async () => {
  const asked = patientFetch('http://localhost:1', { method: 'GET', signal: never });
  await expect(asked).rejects.toThrow(/ECONNREFUSED .*:1$/);
});
