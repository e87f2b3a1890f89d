import { setTimeout as delay } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { select } from '../../../clickhouse/client.ts';
import { event, ndjson } from '../../support/events.ts';
import { useLoader } from '../../support/loader.ts';
import { useObjectStorage } from '../../support/object-storage.ts';
import { useCommands } from '../../support/process.ts';
import { seededRandom, testRounds, testSeed } from '../../support/random.ts';
import { useStore } from '../../support/store.ts';

const db = useStore();
const storage = useObjectStorage('events');
let account = '';
const loader = useLoader(db, (own) => {
  ({ account } = own);
});
const commands = useCommands();

test(`two followers that are killed count each event once, whatever is added, grown, copied, renamed and deleted (seed ${testSeed})`, async () => {
  const random = seededRandom(testSeed);
  const integer = (from: number, to: number) => from + Math.floor(random() * (to - from + 1));
  const pick = <T>(items: readonly T[]) => items[integer(0, items.length - 1)];
  let made = 0;
  let named = 0;
  const lines = (count: number) =>
    ndjson(
      Array.from({ length: count }, () =>
        event({ event_id: `${account}-${++made}`, advertiser_id: account }),
      ),
    );
  const contents = new Map<string, string>();
  const put = async (key: string, content: string) => {
    contents.set(key, content);
    await storage.put(`${account}/${key}`, content);
  };
  const some = (kind: string) => pick([...contents.keys()].filter((key) => key.includes(kind)));
  const changes = [
    () => put(`${integer(0, 99)}/whole-${++named}.ndjson`, lines(integer(1, 300))),
    () => put(`${integer(0, 99)}/growing-${++named}.ndjson`, lines(integer(1, 300))),
    async () => {
      const key = some('growing');
      if (key) await put(key, contents.get(key) + lines(integer(1, 50)));
    },
    async () => {
      const key = some('whole');
      if (key) await put(`${integer(0, 99)}/whole-copy-${integer(0, 9)}.ndjson`, contents.get(key) ?? '');
    },
    async () => {
      const key = some('whole');
      if (!key) return;
      await put(`${integer(0, 99)}/whole-renamed-${++named}.ndjson`, contents.get(key) ?? '');
      await storage.remove(`${account}/${key}`);
      contents.delete(key);
    },
  ];
  storage.meet(() => (integer(0, 20) === 0 ? { status: 503, code: 'SlowDown' } : undefined));
  const env = { ...loader.env(), ...storage.keys };
  const place = [`s3://${storage.bucket}/${account}/**`, '--endpoint', storage.endpoint];
  const start = () => commands.start(['ingest', 'events', ...place, '--follow', '1s'], env);
  const followers = [start(), start()];
  for (let step = 0; step < testRounds(40); step++) {
    await pick(changes)?.();
    await delay(integer(0, 400));
    if (step % 5 !== 4) continue;
    const killed = integer(0, 1);
    await followers[killed]?.kill('SIGKILL');
    followers[killed] = start();
  }
  for (const follower of followers) {
    await follower.said(/looking for files/);
    expect((await follower.kill('SIGTERM')).code).toBe(0);
  }
  storage.reset();
  const last = await commands.run(['ingest', 'events', ...place], env);
  expect(last.code, last.stderr).toBe(0);
  const query =
    'SELECT toUInt32(count()) AS events, toUInt32(uniqExact(event_id)) AS ids FROM events WHERE advertiser_id = {account:String}';
  expect(await select(db.store, query, { account })).toEqual([{ events: made, ids: made }]);
  expect((await loader.run(['verify'])).code).toBe(0);
});
