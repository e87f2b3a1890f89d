import { describe, expect, it } from 'vitest';
import { catalog } from '../../catalog/catalog.ts';
import { rebuildRollups } from '../../clickhouse/consistency/rebuild-rollups.ts';
import { unload } from '../../ingest/history/unload.ts';
import { Load } from '../../ingest/ledger/load.ts';
import { confirmDays } from '../../ingest/lists/confirmations.ts';
import { useChanges } from '../support/changes.ts';
import { type EventLine, event, load, loadRows } from '../support/events.ts';
import { heldAt } from '../support/held.ts';
import { useService } from '../support/service.ts';
import { useStore } from '../support/store.ts';

const db = useStore();
const service = useService(db);
const { changes, listed, storeTime, loadsOf } = useChanges(service, db);

const longAgo = '1970-01-01T00:00:00Z';
const eventsOf = (account: string, days: readonly string[], more: Partial<EventLine> = {}) =>
  days.map((day) => event({ advertiser_id: account, event_time: `${day}T12:00:00Z`, ...more }));

describe('a load', () => {
  it('changes its days for its accounts, in the family of each', async () => {
    await load(db.store, eventsOf('loaded', ['2026-03-02', '2026-03-01'], { publisher_id: 'loaded-p' }));
    expect(await listed('campaigns', 'loaded', longAgo)).toEqual(['2026-03-01', '2026-03-02']);
    expect(await listed('ad_units', 'loaded-p', longAgo)).toEqual(['2026-03-01', '2026-03-02']);
    expect(await listed('ad_units', 'loaded', longAgo)).toEqual([]);
    expect(await listed('campaigns', 'somebody', longAgo)).toEqual([]);

    const since = await storeTime();
    expect(await listed('campaigns', 'loaded', since)).toEqual([]);
    await load(db.store, eventsOf('loaded', ['2026-03-02', '2026-03-09']));
    expect(await listed('campaigns', 'loaded', since)).toEqual(['2026-03-02', '2026-03-09']);
  });

  it('that is repeated changes nothing', async () => {
    const lines = eventsOf('repeated', ['2026-03-01'], { spend: '1' });
    await load(db.store, lines);
    const { days } = await changes('campaigns', 'repeated', longAgo);
    await load(db.store, lines);
    expect((await changes('campaigns', 'repeated', longAgo)).days).toEqual(days);
  });

  it('under way holds changed_until back, and what it changes is seen by who asks again', async () => {
    await load(db.store, eventsOf('waiting', ['2026-03-01']));
    const held = heldAt(db.store, /INSERT INTO incoming /);
    const loading = load(held.store, eventsOf('waiting', ['2026-03-02', '2026-03-03']));
    await held.reached;
    const sentAt = await storeTime();
    const { changed_until: until } = await changes('campaigns', 'waiting', longAgo, 0);
    expect(until < sentAt).toBe(true);
    expect((await changes('campaigns', 'waiting', until, 0)).changed_until).toBe(until);
    held.release();
    await loading;
    expect(await listed('campaigns', 'waiting', until)).toEqual(['2026-03-02', '2026-03-03']);
    expect((await changes('campaigns', 'waiting', until, 0)).changed_until > sentAt).toBe(true);
  });

  it('that is taken back changes the days it had, also those that have nothing any more', async () => {
    await load(db.store, eventsOf('taken-back', ['2026-03-01']));
    await load(db.store, eventsOf('taken-back', ['2026-03-02', '2026-04-01']));
    const since = await storeTime();
    await unload(db.store, (await loadsOf()).at(-1) ?? '', () => new Date());
    expect(await listed('campaigns', 'taken-back', since)).toEqual(['2026-03-02', '2026-04-01']);
  });
});

describe('a rebuild', () => {
  const month = { from: '2026-03-01', to: '2026-03-31' };

  it('changes the days whose rows come out different, and no others', async () => {
    await load(db.store, eventsOf('rebuilt', ['2026-03-01', '2026-03-02', '2026-03-03'], { spend: '1' }));
    const since = await storeTime();
    await rebuildRollups(db.store, catalog, month);
    expect(await listed('campaigns', 'rebuilt', since)).toEqual([]);
    for (const shard of db.shards) {
      await shard.command({
        query: "ALTER TABLE events DELETE WHERE advertiser_id = 'rebuilt' AND day = '2026-03-02'",
        clickhouse_settings: { mutations_sync: '2' },
      });
    }
    await rebuildRollups(db.store, catalog, month);
    expect(await listed('campaigns', 'rebuilt', since)).toEqual(['2026-03-02']);
  });

  it('keeps when a load changed the others', async () => {
    await load(db.store, eventsOf('loaded-before', ['2026-03-01'], { spend: '1' }));
    const since = await storeTime();
    await load(db.store, eventsOf('loaded-before', ['2026-03-02', '2026-03-31'], { spend: '2' }));
    const { days } = await changes('campaigns', 'loaded-before', since);
    expect(days.map(({ day }) => day)).toEqual(['2026-03-02', '2026-03-31']);
    await rebuildRollups(db.store, catalog, month);
    await rebuildRollups(db.store, catalog, month);
    expect((await changes('campaigns', 'loaded-before', since)).days).toEqual(days);
  });

  it('under way holds changed_until back', async () => {
    const turn = await Load.begin(db.store, { kind: 'rebuild', file: 'rollups' }, new Date());
    const begun = await storeTime();
    expect((await changes('campaigns', 'anybody', longAgo, 0)).changed_until < begun).toBe(true);
    await turn.finish();
    expect((await changes('campaigns', 'anybody', longAgo, 0)).changed_until > begun).toBe(true);
  });
});

describe('a confirmation', () => {
  it.each([
    ['of a range', (account: string) => confirmDays(db.store, account, '2026-02-20', '2026-03-02')],
    [
      'from a list',
      (account: string) =>
        loadRows(db.store, 'confirmations', [
          [account, '2026-02-20'],
          [account, '2026-03-01'],
          [account, '2026-03-02'],
        ]),
    ],
  ])(
    '%s changes the days that it makes confirmed, once, in the family whose money it is',
    async (how, confirm) => {
      const account = `confirmed ${how}`;
      const days = ['2026-03-01', '2026-03-03'];
      await load(db.store, [
        ...eventsOf(account, days, { spend: '1' }),
        ...eventsOf(account, ['2026-03-02'], { spend: '1', confirmed: true }),
        event({ publisher_id: account, event_time: '2026-03-01T12:00:00Z' }),
      ]);
      const before = await storeTime();
      await confirm(account);
      const { days: changed } = await changes('campaigns', account, before);
      expect(changed).toEqual([{ day: '2026-03-01', changed_at: expect.any(String), unconfirmed: false }]);
      expect(await listed('ad_units', account, before)).toEqual([]);
      const after = await storeTime();
      await confirm(account);
      expect(await listed('campaigns', account, after)).toEqual([]);
      expect((await changes('campaigns', account, longAgo)).days).toMatchObject([
        { day: '2026-03-01', unconfirmed: false },
        { day: '2026-03-02', unconfirmed: false },
        { day: '2026-03-03', unconfirmed: true },
      ]);
    },
  );
});

describe('names', () => {
  it('have a time of their own, which loading the same list again does not move', async () => {
    await load(db.store, eventsOf('named', ['2026-03-01']));
    const at = async () => (await changes('campaigns', 'named', longAgo)).names_changed_at;
    expect(await at()).toBeNull();
    const list = [
      ['named', 'c1', 'A first name that a later line replaces'],
      ['named', 'c1', 'One'],
      ['named', 'c2', 'Two'],
    ];
    await loadRows(db.store, 'campaigns', list);
    const first = await at();
    expect(first).not.toBeNull();
    await loadRows(db.store, 'campaigns', list);
    expect(await at()).toBe(first);
    const since = await storeTime();
    await loadRows(db.store, 'creatives', [['named', 'x', 'A headline']]);
    const second = await at();
    expect(second && second > since).toBe(true);
    await loadRows(db.store, 'sites', [['named', 's', 'A site']]);
    expect(await at(), 'of the other family').toBe(second);
    expect(await listed('campaigns', 'named', since)).toEqual([]);
  });

  it('that have just changed are told again next time, because not every node may show them', async () => {
    await loadRows(db.store, 'ad_units', [['renamed', 'u', `Now ${Date.now()}`]]);
    const { names_changed_at: at, changed_until: until } = await changes('ad_units', 'renamed', longAgo, 0);
    expect(at && until < at).toBe(true);
  });
});

describe('changed_since', () => {
  it.each([undefined, null, 5, '', 'yesterday', '2026-11-20', '2026-11-20T08:00:00', '2026-02-30T00:00:00Z'])(
    'of %s is refused, naming the field',
    async (since) => {
      const response = await service.post('/v1/campaigns/changes', 'asking', { changed_since: since });
      expect(response.status).toBe(400);
      expect(await response.json()).toMatchObject({ code: 'invalid_request', field: 'changed_since' });
    },
  );

  it('takes any offset and any fraction, to the microsecond', async () => {
    await load(db.store, eventsOf('precise', ['2026-03-01']));
    const [changed] = (await changes('campaigns', 'precise', longAgo)).days;
    const at = changed?.changed_at ?? '';
    const earlier = `${at.slice(0, -2)}${Number(at.at(-2)) > 0 ? Number(at.at(-2)) - 1 : ''}Z`;
    expect(await listed('campaigns', 'precise', at)).toEqual([]);
    expect(await listed('campaigns', 'precise', at.replace('Z', '999+00:00'))).toEqual([]);
    expect(await listed('campaigns', 'precise', at.replace('Z', '+00:01'))).toEqual(['2026-03-01']);
    expect(await listed('campaigns', 'precise', earlier)).toEqual(at.at(-2) === '0' ? [] : ['2026-03-01']);
    expect(await listed('campaigns', 'precise', '0001-01-01T00:00:00Z')).toEqual(['2026-03-01']);
  });

  it.each([
    ['application/json; charset=utf-8', 200],
    ['text/html, application/json;charset=utf-8;q=0.9', 200],
    ['text/csv', 406],
  ])('is answered in JSON alone: Accept: %s is %i', async (accept, status) => {
    const body = { changed_since: longAgo };
    const response = await service.post('/v1/campaigns/changes', 'asking', body, { accept });
    expect(response.status).toBe(status);
  });

  it('in the future has no changes, and changed_until is not later than now', async () => {
    await load(db.store, eventsOf('ahead', ['2026-03-01']));
    for (const since of ['2100-01-01T00:00:00Z', '9999-12-31T23:59:59Z']) {
      const { days, changed_until: until } = await changes('campaigns', 'ahead', since);
      expect(days).toEqual([]);
      expect(until < (await storeTime())).toBe(true);
    }
  });
});
