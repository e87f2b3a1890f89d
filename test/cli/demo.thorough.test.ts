import { expect, test, vi } from 'vitest';
import { accounts, sample, useDemo } from '../support/demo.ts';
import { listening } from '../support/process.ts';

const demo = useDemo();
const { engineUrl, number, expectWholeSample } = demo;

test('a demo killed while it loads its sample has all of it, once, after the next start', async () => {
  const events = 'SELECT count() FROM events';
  const moments = [
    async () => engineUrl() !== undefined,
    async () => (await number(events)) > 0,
    async () => (await number(events)) > sample / 2,
  ];
  let printed = '';
  for (const moment of moments) {
    const interrupted = demo.start();
    const reached = () => moment().catch(() => false);
    await vi.waitUntil(reached, { timeout: 60_000, interval: 5 });
    printed += (await interrupted.kill('SIGKILL')).stdout;
  }
  const last = demo.start();
  await listening(last);
  await expectWholeSample();
  const { code, stdout } = await last.kill('SIGTERM');
  expect(code).toBe(0);
  printed += stdout;
  for (const account of accounts) expect(printed).toMatch(new RegExp(`^${account}\\tadt_`, 'm'));
});
