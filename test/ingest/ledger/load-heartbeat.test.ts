import { spawnSync } from 'node:child_process';
import { afterEach, expect, test, vi } from 'vitest';
import { isAlive, machine } from '../../../ingest/ledger/load-heartbeat.ts';

afterEach(() => void vi.restoreAllMocks());
/** Of a process that has ended. */
const { pid: ended } = spawnSync(process.execPath, ['--version']);

test('a load on this machine runs as long as its process does; of another machine nobody can tell', () => {
  expect(isAlive({ host: machine(), pid: process.pid })).toBe(true);
  expect(isAlive({ host: machine(), pid: ended })).toBe(false);
  expect(isAlive({ host: 'another', pid: ended })).toBe(true);
});

test('a process of another user runs, though it takes no signal', () => {
  vi.spyOn(process, 'kill').mockImplementation(() => {
    throw Object.assign(new Error('kill EPERM'), { code: 'EPERM' });
  });
  expect(isAlive({ host: machine(), pid: ended })).toBe(true);
});

test('a machine is told from a container or a clone of the same name', () => {
  expect(machine()).toMatch(/^.+\/[0-9a-f]{8}$/);
});
