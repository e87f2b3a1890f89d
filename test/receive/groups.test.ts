import { expect, test } from 'vitest';
import { inGroups } from '../../src/receive/groups.ts';

const patient = { timeout: 30_000 };

test('bodies that come while others are loaded are loaded together, and those that come again with them', async () => {
  const inGroup = inGroups();
  const groups: string[][] = [];
  const ends: (() => void)[] = [];
  /** Those that begin before any of them can have ended are a group. */
  const load = (name: string) =>
    inGroup(async () => {
      if (ends.length === 0) groups.push([]);
      groups.at(-1)?.push(name);
      await new Promise<void>((end) => ends.push(end));
    });
  const end = () => {
    for (const each of ends.splice(0)) each();
  };
  const first = load('a');
  await expect.poll(() => groups, patient).toEqual([['a']]);
  const second = ['b', 'c'].map(load);
  end();
  await first;
  await expect.poll(() => groups, patient).toEqual([['a'], ['b', 'c']]);
  const waiting = load('d');
  end();
  await Promise.all(second);
  const again = ['b', 'c'].map(load);
  await expect.poll(() => groups, patient).toEqual([['a'], ['b', 'c'], ['d', 'b', 'c']]);
  end();
  await Promise.all([waiting, ...again]);
});
