import { expect, onTestFinished, test, vi } from 'vitest';
import { select } from '../../clickhouse/client.ts';
import { retrying } from '../../clickhouse/retry.ts';
import { useStore } from '../support/store.ts';

const db = useStore();

/** Codes of ClickHouse's own list, which the server gives to the error itself. */
const codes: Readonly<Record<string, number>> = {
  'shuts down': 236,
  'is overloaded': 745,
  'has no connection left': 203,
  'cannot resolve the name of another node': 198,
  'has no active replica for the moment': 254,
  'reaches too few shards': 904,
};

test.each(Object.entries(codes))('a server that %s is asked again', async (_, code) => {
  let attempts = 0;
  const answer = await retrying(() => {
    const query = `SELECT throwIf(${attempts++ === 0}, 'for a moment', ${code}::Int16)`;
    return select(db.store, query, {}, { allow_custom_error_code_in_throwif: 1 });
  });
  expect({ attempts, rows: answer.length }).toEqual({ attempts: 2, rows: 1 });
});

// As cut connections between two nodes had them.
test.each([
  ['Attempt to read after eof', 32],
  ['Cannot read all data. Bytes read: 9. Bytes expected: 25', 33],
])('a node that is lost in the middle of an answer is asked again: %s', async (said, code) => {
  let attempts = 0;
  const failsOnce = (message: string) => {
    attempts = 0;
    return retrying(() => {
      const query = `SELECT throwIf(${attempts++ === 0}, '${message}', ${code}::Int16)`;
      return select(db.store, query, {}, { allow_custom_error_code_in_throwif: 1 });
    });
  };
  await failsOnce(`${said}: while receiving packet from 127.0.0.1:9000`);
  expect(attempts).toBe(2);
  await expect(failsOnce(said)).rejects.toThrow(said);
});

test('a clock that is set forward does not end the attempts', async () => {
  vi.useFakeTimers({ toFake: ['Date'] });
  onTestFinished(() => void vi.useRealTimers());
  let attempts = 0;
  await retrying(async () => {
    if (attempts++ > 0) return;
    vi.setSystemTime(Date.now() + 3_600_000);
    throw new Error('socket hang up');
  });
  expect(attempts).toBe(2);
});

test('an error that stays is not tried again', async () => {
  let attempts = 0;
  const wrong = retrying(() => {
    attempts++;
    return select(
      db.store,
      "SELECT throwIf(1, 'for good', 62::Int16)",
      {},
      { allow_custom_error_code_in_throwif: 1 },
    );
  });
  await expect(wrong).rejects.toThrow(/for good/);
  expect(attempts).toBe(1);
});
