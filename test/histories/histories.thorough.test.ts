import { expect, test } from 'vitest';
import { historyRounds } from '../support/histories/rounds.ts';

// Many more: node --import tsx test/long/histories.ts --rounds 500
test('each answer is true at a moment between its begin and its end, whatever is killed and stopped', async () => {
  const told: string[] = [];
  const wrong = await historyRounds({
    ...{ rounds: 1, seed: 1, commands: 3, longestStopMs: 2_000, onDisk: false },
    onRound: (text) => told.push(text),
  });
  expect(wrong, told.join('\n')).toEqual([]);
}, 600_000);
