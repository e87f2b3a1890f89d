import { describe, expect, test } from 'vitest';
import { type Answer, type Change, judge, type Part } from '../support/histories/judge.ts';

const brings = (adds: number): Part => ({ adds, removes: 0 });
const takes = (removes: number): Part => ({ adds: 0, removes });

function change(begin: number, end: number, parts: readonly Part[], fields: Partial<Change> = {}): Change {
  return { told: 'a command', account: 'a', subject: 'file', begin, end, done: true, parts, ...fields };
}

const killed = { done: false };

function answer(begin: number, end: number, units: number, fields: Partial<Answer> = {}): Answer {
  const fits = (state: number) => state === units;
  return { told: `says ${units}`, account: 'a', table: 'date', begin, end, fits, ...fields };
}

const judged = (changes: readonly Change[], answers: readonly Answer[], trustMs = 0) =>
  judge({ changes, answers, trustMs });

const load = change(10, 20, [brings(1)]);
const close = change(30, 40, [{ adds: 0, removes: 0, copies: { bits: 1, places: 8 } }]);

describe('histories that are right', () => {
  test.each<[string, Change[], Answer[], number?]>([
    ['nothing is there at first', [], [answer(0, 1, 0)]],
    ['a load shows at any moment of it', [load], [answer(0, 9, 0), answer(11, 12, 0), answer(13, 14, 1)]],
    ['an answer under way sees what came or not', [load], [answer(5, 15, 0), answer(6, 30, 1)]],
    [
      'chunks come one by one',
      [change(10, 20, [brings(1), brings(2)])],
      [answer(11, 12, 2), answer(13, 14, 3)],
    ],
    ['what is killed may be left undone', [{ ...load, ...killed }], [answer(30, 31, 0), answer(90, 91, 0)]],
    ['… and may come later', [{ ...load, ...killed }], [answer(30, 31, 0), answer(90, 91, 1)]],
    [
      '… until the next command that is done',
      [change(10, 20, [brings(1), brings(2)], killed), change(30, 40, [brings(1), brings(2)])],
      [answer(25, 26, 2), answer(50, 51, 3)],
    ],
    ['each table has its own moment', [load], [answer(11, 12, 1), answer(13, 14, 0, { table: 'device' })]],
    ['accounts have nothing of each other', [load], [answer(30, 31, 0, { account: 'b' })]],
    [
      'what is in doubt is taken back by the load that brings it anew',
      [{ ...load, ...killed }, change(40, 50, [brings(1)])],
      [answer(30, 31, 1), answer(42, 43, 0), answer(45, 46, 1), answer(51, 52, 1)],
    ],
    [
      '… also when that is killed, too',
      [{ ...load, ...killed }, change(40, 50, [brings(1)], killed), change(60, 70, [brings(1)])],
      [answer(30, 31, 1), answer(55, 56, 0), answer(71, 72, 1)],
    ],
    [
      '… or by the one that has brought it',
      [load],
      [answer(11, 12, 1), answer(13, 14, 0), answer(20, 21, 1)],
    ],
    ['a kept answer is a little old', [load], [answer(12, 13, 1), answer(14, 15, 0)], 5],
    ['a close keeps what was there', [load, close], [answer(50, 51, 0b1_0000_0001)]],
  ])('%s', (_, changes, answers, trustMs) => {
    expect(judged(changes, answers, trustMs)).toEqual([]);
  });
});

describe('histories that are wrong', () => {
  const two = change(10, 20, [brings(1), brings(2)]);
  test.each<[string, Change[], Answer[], number?]>([
    ['what nobody loaded', [], [answer(0, 1, 1)]],
    ['what is loaded later', [load], [answer(0, 9, 1)]],
    [
      'what a killed load left is gone, and nobody mends it',
      [{ ...load, ...killed }],
      [answer(30, 31, 1), answer(32, 33, 0)],
    ],
    [
      'what was mended is gone',
      [{ ...load, ...killed }, change(40, 50, [brings(1)]), change(60, 70, [brings(1)])],
      [answer(51, 52, 1), answer(62, 63, 0)],
    ],
    [
      'what a load had done is gone while a killed one is mended that brought nothing',
      [load, change(30, 35, [brings(1)], killed), change(40, 50, [brings(1)])],
      [answer(45, 46, 0)],
    ],
    ['what was done is not there', [load], [answer(21, 22, 0)]],
    ['what was there is gone', [load, change(30, 40, [brings(1)])], [answer(31, 32, 0)]],
    ['half of what goes in one step', [two, change(30, 40, [takes(3)])], [answer(32, 33, 2)]],
    ['both of what is exchanged', [load, change(30, 40, [{ removes: 1, adds: 2 }])], [answer(32, 33, 3)]],
    ['neither of what is exchanged', [load, change(30, 40, [{ removes: 1, adds: 2 }])], [answer(32, 33, 0)]],
    [
      'what was killed comes after the next command that is done',
      [load, change(30, 35, [takes(1)], killed), change(40, 50, [brings(1)])],
      [answer(60, 61, 0)],
    ],
    [
      'two files that came one after the other, seen the other way round',
      [load, change(30, 40, [brings(2)], { subject: 'other' })],
      [answer(25, 50, 2)],
    ],
    [
      'two answers that do not agree on what went first',
      [two, change(30, 40, [takes(1)]), change(30, 40, [takes(2)], { subject: 'other' })],
      [answer(31, 35, 1), answer(32, 36, 2)],
    ],
    [
      'an answer that is older than kept ones may be',
      [load, change(30, 40, [takes(1)])],
      [answer(32, 33, 0), answer(39, 39.5, 1)],
      5,
    ],
    ['an old answer after a command that has waited', [change(10, 30, [brings(1)])], [answer(31, 32, 0)], 10],
    ['a close that keeps nothing', [load, close], [answer(50, 51, 1)]],
  ])('%s', (_, changes, answers, trustMs) => {
    expect(judged(changes, answers, trustMs)).toHaveLength(1);
  });
});

test('an answer that fits nothing is refused with its words, and what was possible', () => {
  const [text] = judged([load], [answer(30, 31, 5)]);
  expect(text).toMatch(/a, date: says 5 \(30 to 31 ms\) is true at no moment; possible at its end: 1;/);
});
