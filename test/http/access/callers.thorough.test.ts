import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import { beforeAll, expect, test } from 'vitest';
import { insertLarge } from '../../support/accounts.ts';
import { openReport, residentMemoryMb } from '../../support/process.ts';
import { metric } from '../../support/service.ts';
import { useStore } from '../../support/store.ts';
import { statusesOf, untilClosed, useCalledService } from '../called-service.ts';
import { reportsRunning } from '../report-statements.ts';

const db = useStore();
beforeAll(() => insertLarge(db.store, ['large']));
const service = useCalledService(db);
const { expectReport, message, raw } = service;
service.onLog((lines) => expect(lines.filter(({ status }) => status === 499)).not.toEqual([]));

const memoryMb = () => residentMemoryMb(service.pid);
const running = () => reportsRunning(db.store);

test('20 callers that read nothing are cut off, and neither their statements nor their memory stay', async () => {
  const before = memoryMb();
  const answers: IncomingMessage[] = [];
  for (let n = 0; n < 20; n++) {
    const answer = await openReport(service.url, { token: service.token });
    answer.on('error', () => undefined);
    answers.push(answer);
  }
  await expectReport();
  await expect.poll(running, { timeout: 10_000, interval: 100 }).toEqual([]);
  for (const answer of answers) answer.resume();
  await expect.poll(() => answers.every(({ closed }) => closed), { timeout: 10_000 }).toBe(true);
  expect(answers.filter(({ complete }) => complete)).toEqual([]);
  await expect.poll(memoryMb, { timeout: 10_000 }).toBeLessThan(before + 60);
});

test('200 callers that disconnect, before the first byte or in the middle, leave nothing behind', async () => {
  const before = memoryMb();
  for (let round = 0; round < 10; round++) {
    const sockets = Array.from({ length: 20 }, (_, n) => {
      const socket = raw();
      socket.on('error', () => undefined);
      socket.write(
        message(
          [],
          '{"start_time":"2026-01-01","end_time":"2026-01-15"}',
          '/v1/campaigns/breakdowns/device_creative_date',
        ),
      );
      return { socket, middle: n % 2 === 0 };
    });
    await Promise.all(
      sockets.map(async ({ socket, middle }) => {
        await once(socket, middle ? 'readable' : 'connect');
        socket.destroy();
      }),
    );
  }
  await expect.poll(running, { timeout: 5_000, interval: 50 }).toEqual([]);
  await expect.poll(() => metric(service.url, 'adtally_reports_running')).toBe(0);
  await expect.poll(memoryMb, { timeout: 10_000 }).toBeLessThan(before + 60);
});

test.concurrent('callers that trickle their headers or their body are cut off, and others are served meanwhile', async () => {
  const startedAt = performance.now();
  const whole = [message(), message(['Transfer-Encoding: chunked'], '5\r\n{"sta\r\n')];
  const cuts = [60, (whole[0]?.length ?? 0) - 20, whole[1]?.length ?? 0];
  const sockets = cuts.map((cut, n) => {
    const socket = raw();
    socket.write((n === 2 ? whole[1] : whole[0])?.slice(0, cut) ?? '');
    const rest = n === 2 ? '' : (whole[0]?.slice(cut) ?? '');
    let at = 0;
    const trickle = setInterval(() => socket.write(n === 2 ? '1\r\nx\r\n' : (rest[at++] ?? '')), 4_000);
    socket.once('close', () => clearInterval(trickle));
    return untilClosed(socket);
  });
  await expectReport();
  const answers = await Promise.all(sockets);
  expect(answers.map(statusesOf)).toEqual([[408], [408], [408]]);
  expect(performance.now() - startedAt).toBeLessThan(45_000);
});

test.concurrent('300 idle connections keep nobody out, and one that was idle for a while is still good', async () => {
  const sockets = Array.from({ length: 300 }, raw);
  await Promise.all(sockets.map((socket) => once(socket, 'connect')));
  await expectReport();
  const [kept] = sockets;
  kept?.write(message());
  const [first] = kept ? await once(kept, 'data') : [];
  expect(statusesOf(String(first))).toEqual([200]);
  // Longer than Node would keep it by itself.
  const resting = performance.now();
  await expect.poll(() => performance.now() - resting, { timeout: 10_000 }).toBeGreaterThan(7_000);
  expect(kept?.closed).toBe(false);
  kept?.write(message());
  const [second] = kept ? await once(kept, 'data') : [];
  expect(statusesOf(String(second))).toEqual([200]);
});
