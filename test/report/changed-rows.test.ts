import { describe, expect, it } from 'vitest';
import { catalog } from '../../catalog/catalog.ts';
import { rebuildRollups } from '../../clickhouse/consistency/rebuild-rollups.ts';
import { unload } from '../../ingest/history/unload.ts';
import { confirmDays } from '../../ingest/lists/confirmations.ts';
import { useChanges } from '../support/changes.ts';
import { event, load } from '../support/events.ts';
import { useService } from '../support/service.ts';
import { useStore } from '../support/store.ts';

const db = useStore();
const service = useService(db);
const { storeTime, loadsOf } = useChanges(service, db);

const longAgo = '1970-01-01T00:00:00Z';
const eventsOf = (account: string, days: readonly string[], more: { spend: string }) =>
  days.map((day) => event({ advertiser_id: account, event_time: `${day}T12:00:00Z`, ...more }));

describe('a report by date with changed_since', () => {
  const path = '/v1/campaigns/breakdowns/device_date';
  const march = { start_time: '2026-03-01', end_time: '2026-03-31' };
  const ask = async (body: object, accept = 'application/json', at = path) => {
    const response = await service.post(at, 'reported', { ...march, ...body }, { accept });
    return { status: response.status, text: await response.text() };
  };
  const daysOf = async (since: string) => {
    const { text } = await ask({ changed_since: since });
    return JSON.parse(text).result.rows.map((row: { start_time: string }) => row.start_time);
  };

  it('has the rows of changed days only, whole, and knows it when more has changed', async () => {
    const first = eventsOf('reported', ['2026-03-01', '2026-03-02', '2026-03-03', '2026-04-01'], {
      spend: '1',
    });
    await load(db.store, first);
    expect(await daysOf(longAgo)).toEqual(['2026-03-01', '2026-03-02', '2026-03-03']);
    const since = await storeTime();
    expect(await daysOf(since)).toEqual([]);
    await load(db.store, eventsOf('reported', ['2026-03-02'], { spend: '2' }));
    expect(await daysOf(since)).toEqual(['2026-03-02']);
    await confirmDays(db.store, 'reported', '2026-03-03', '2026-03-03');
    expect(await daysOf(since)).toEqual(['2026-03-02', '2026-03-03']);
    const { result } = JSON.parse((await ask({ changed_since: since })).text);
    expect(result.rows[0]).toMatchObject({ impressions: 2, spent: 3 });
    expect(result.unconfirmed_revenue_dates).toEqual(['2026-03-01', '2026-03-02']);

    const csv = await ask({ changed_since: since }, 'text/csv');
    expect(csv.text.trimEnd().split('\n')).toHaveLength(3);
    const more = { changed_since: since, totals: true, filters: { device: ['unknown'] }, limit: 1 };
    const asked = JSON.parse((await ask(more)).text).result;
    expect(asked).toMatchObject({ row_count: 2, totals: { spent: 4 } });
  });

  it('has the rows of days that lost events, by a load that was taken back or a rebuild', async () => {
    const days = ['2026-03-20', '2026-03-21'];
    await load(db.store, eventsOf('reported', days, { spend: '1' }));
    await load(db.store, eventsOf('reported', days, { spend: '2' }));
    const loaded = await storeTime();
    await unload(db.store, (await loadsOf()).at(-1) ?? '', () => new Date());
    expect(await daysOf(loaded)).toEqual(days);
    await load(db.store, eventsOf('reported', days, { spend: '3' }));
    const since = await storeTime();
    await db.store.command({
      query: "ALTER TABLE events DELETE WHERE day = '2026-03-21' AND spend = 3",
      clickhouse_settings: { mutations_sync: '2' },
    });
    await rebuildRollups(db.store, catalog, { from: '2026-03-01', to: '2026-03-31' });
    expect(await daysOf(since)).toEqual(['2026-03-21']);
  });

  it.each([
    [{ changed_since: 'yesterday' }, path],
    [{ changed_since: longAgo, time_grain: 'week' }, path],
    [{ changed_since: longAgo, compare_to: 'previous_period' }, path],
    [{ changed_since: longAgo }, '/v1/campaigns'],
  ])('is refused as %s of %s, naming the field', async (body, at) => {
    const { status, text } = await ask(body, 'application/json', at);
    expect(status).toBe(400);
    expect(JSON.parse(text)).toMatchObject({ code: 'invalid_request', field: 'changed_since' });
  });
});
