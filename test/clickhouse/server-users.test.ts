import { expect, test } from 'vitest';
import { connect } from '../../clickhouse/client.ts';
import { migrate } from '../../clickhouse/migrate/migrate.ts';
import { listSignOuts, signOutEverywhere } from '../../src/accounts/sign-outs.ts';
import {
  agree,
  listAnswers,
  listSchedules,
  storeSchedule,
  unsubscribe,
} from '../../src/schedules/schedules.ts';
import { useCluster } from '../support/cluster.ts';
import { dailySchedule } from '../support/mails.ts';
import { serverUsers } from '../support/server-users.ts';
import { addressOf } from '../support/store.ts';

const server = useCluster(1, { more: serverUsers });

test('a server starts with the user for people of users.xml, who may end sessions and make schedules, and no more', async () => {
  const [node] = server.nodes;
  if (!node) throw new Error('there is one node');
  const address = addressOf(node, 'adtally');
  const loader = { ...address, user: 'adtally', password: 'ADTALLY_PASSWORD' };
  await migrate(loader);
  const store = connect(loader);
  const people = connect({ ...address, user: 'sessions', password: 'SESSIONS_PASSWORD' });
  try {
    await signOutEverywhere(people, 'anna');
    await agree(people, 'account shop', 'anna@example.com', store);
    await unsubscribe(people, 'weekly', 'anna@example.com', store);
    await storeSchedule(people, dailySchedule('shop'), store);
    expect(await listSignOuts(store)).toMatchObject([{ person: 'anna' }]);
    expect([...(await listAnswers(store, ['account shop', 'weekly'])).keys()].sort()).toEqual([
      'account shop',
      'weekly',
    ]);
    expect(await listSchedules(store)).toMatchObject([{ id: 'daily', account: 'shop' }]);
    for (const query of [
      'SELECT count() FROM adtally.campaigns_date',
      'SELECT count() FROM adtally.tokens',
      "INSERT INTO adtally.tokens (id) VALUES ('mine')",
    ]) {
      await expect(people.command({ query }), query).rejects.toThrow(/Not enough privileges/);
    }
  } finally {
    await Promise.all([store.close(), people.close()]);
  }
});
