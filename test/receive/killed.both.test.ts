import { setTimeout as delay } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { catalog } from '../../catalog/catalog.ts';
import { select } from '../../clickhouse/client.ts';
import { verifyRollups } from '../../clickhouse/consistency/verify-rollups.ts';
import { createToken } from '../../src/accounts/tokens.ts';
import { event } from '../support/events.ts';
import { thorough } from '../support/mode.ts';
import { type Command, environmentOf, listening, useCommands } from '../support/process.ts';
import { seededRandom } from '../support/random.ts';
import { type Answer, bodyOf, sendTo } from '../support/receiver.ts';
import { useStore } from '../support/store.ts';

const db = useStore();
const commands = useCommands();
const kills = thorough ? 6 : 2;
const senders = 6;

test(`bodies that are repeated count once, though the service is killed ${kills} times`, async () => {
  const random = seededRandom(7);
  const authorization = `Bearer ${await createToken(db.store, { account: 'web', label: '', purpose: 'ingest' })}`;
  let running: Command | undefined;
  let url = '';
  const start = async () => {
    running = commands.start(['receive'], {
      ...environmentOf(db.address),
      RECEIVE_PORT: '0',
      ANSWER_TRUST_MS: '0',
    });
    url = await listening(running);
  };
  /** What a sender does: again until it is told that the body is loaded. */
  const send = async (body: string, headers: Record<string, string>): Promise<Answer> => {
    for (;;) {
      const answer = await sendTo(`${url}/v1/events`, body, { authorization, ...headers }).catch(
        () => undefined,
      );
      if (answer?.status === 200) return answer;
      if (answer && answer.status !== 503) throw new Error(JSON.stringify(answer.json));
      await delay(50);
    }
  };
  let sending = true;
  const sent: number[] = [];
  const sender = async (n: number) => {
    for (let m = 0; sending; m++) {
      const count = 1 + ((n + m) % 4) * 30;
      const account = `sender-${n}`;
      const lines = Array.from({ length: count }, (_, k) =>
        event({ advertiser_id: account, device: `${m}.${k}` }),
      );
      const body = bodyOf(lines);
      const key = m % 2 ? { 'idempotency-key': `${n} ${m}` } : {};
      const [one, other] = await Promise.all([
        send(body, key as Record<string, string>),
        send(body, key as Record<string, string>),
      ]);
      const { accepted, duplicates } = one.json as { accepted: number; duplicates: number };
      expect(accepted + duplicates).toBe(count);
      expect(other.json.visible_at).toBe(one.json.visible_at);
      sent[n] = (sent[n] ?? 0) + count;
    }
  };
  /** A stream whose records are gathered into other bodies each time, as by one who reads it anew after a failure. */
  const reader = async (n: number) => {
    const account = `reader-${n}`;
    for (let [from, least, isDone] = [0, 1, false]; sending || !isDone; ) {
      const piece = (offset: number, count: number) =>
        sendTo(
          `${url}/v1/events`,
          bodyOf(
            Array.from({ length: count }, (_, k) =>
              event({ event_id: `${n} ${offset + k}`, advertiser_id: account, device: `${offset + k}` }),
            ),
          ),
          { authorization, channel: account, offset: `${offset}` },
        ).catch(() => undefined);
      const offset = Math.max(0, from - Math.floor(random() * 20));
      const count = () => from - offset + least + Math.floor(random() * 90);
      const answers = await Promise.all([piece(offset, count()), piece(offset, count())]);
      isDone = answers.every((answer) => answer?.status === 200);
      for (const answer of answers) {
        if (answer && ![200, 409, 503].includes(answer.status)) throw new Error(JSON.stringify(answer.json));
        const { committed, records } = (answer?.json ?? {}) as { committed?: number; records?: number };
        if (answer?.status === 200) least = 1;
        least = records ?? least;
        from = Math.max(from, committed ?? 0);
      }
      sent[n] = from;
    }
  };
  await start();
  const all = Promise.all(
    Array.from({ length: senders }, (_, n) => (n < senders - 2 ? sender(n) : reader(n))),
  );
  // Whatever fails there ends the test when it is waited for.
  all.catch(() => undefined);
  for (let n = 0; n < kills; n++) {
    await delay(200 + random() * 2_500);
    await running?.kill('SIGKILL');
    await start();
  }
  sending = false;
  await all;
  const rows = await select<{ account: string; events: number }>(
    db.store,
    'SELECT advertiser_id AS account, toFloat64(count()) AS events FROM events GROUP BY account ORDER BY account',
  );
  const named = sent.map((events, n) => ({
    account: `${n < senders - 2 ? 'sender' : 'reader'}-${n}`,
    events,
  }));
  expect(rows).toEqual(named.toSorted((a, b) => (a.account < b.account ? -1 : 1)));
  // Each record of a stream, and not one twice and another not at all.
  const different =
    "SELECT toFloat64(uniqExact(device)) AS n, toFloat64(max(toUInt64(device))) AS last FROM events WHERE advertiser_id LIKE 'reader-%' GROUP BY advertiser_id ORDER BY advertiser_id";
  const streams = sent.slice(senders - 2);
  expect(await select(db.store, different)).toEqual(streams.map((n) => ({ n, last: n - 1 })));

  expect(
    (await verifyRollups(db.store, catalog, { from: '2026-03-01', to: '2026-03-01' })).differences,
  ).toEqual([]);
  expect(await running?.kill('SIGTERM')).toMatchObject({ code: 0 });
});

test('at SIGTERM a body that is being loaded gets its answer, and the next one none', async () => {
  const running = commands.start(['receive'], { ...environmentOf(db.address), RECEIVE_PORT: '0' });
  const url = await listening(running);
  const authorization = `Bearer ${await createToken(db.store, { account: 'last', label: '', purpose: 'ingest' })}`;
  const lines = Array.from({ length: 20_000 }, (_, n) => event({ advertiser_id: 'last', device: `${n}` }));
  const answer = sendTo(`${url}/v1/events`, bodyOf(lines), { authorization });
  await expect
    .poll(
      async () =>
        (
          await select<{ n: number }>(
            db.store,
            "SELECT toUInt32(count()) AS n FROM loads WHERE file = 'push from last'",
          )
        )[0]?.n,
      { timeout: 20_000 },
    )
    .toBeGreaterThan(0);
  const ended = running.kill('SIGTERM');
  expect(await answer).toMatchObject({ status: 200, json: { accepted: 20_000 } });
  expect(await ended).toMatchObject({ code: 0 });
  await expect(sendTo(`${url}/v1/events`, bodyOf(lines), { authorization })).rejects.toThrow();
});
