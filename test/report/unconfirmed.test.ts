import { describe, expect, it } from 'vitest';
import { confirmDays } from '../../ingest/lists/confirmations.ts';
import { event, load, loadRows } from '../support/events.ts';
import { useService } from '../support/service.ts';
import { useStore } from '../support/store.ts';

const test = useStore();
const service = useService(test);

/** The unconfirmed dates of an account's reports, advertiser then publisher. */
async function unconfirmed(account: string, start = '2026-01-01', end = '2026-12-31') {
  const dates = async (path: string) =>
    (await service.report(path, account, start, end)).unconfirmed_revenue_dates;
  return { campaigns: await dates('/v1/campaigns'), ad_units: await dates('/v1/ad_units') };
}

const noon = (day: string) => `${day}T12:00:00Z`;
const advertised = (advertiser_id: string, day: string) =>
  event({ advertiser_id, event_time: noon(day), publisher_id: 'some-publisher' });
const published = (publisher_id: string, day: string) =>
  event({ publisher_id, event_time: noon(day), advertiser_id: 'some-advertiser' });

describe('a day', () => {
  it('is unconfirmed for the account whose money it is, and for nobody else', async () => {
    await load(test.store, [
      event({ advertiser_id: 'a1', publisher_id: 'p1', spend: '1', event_time: noon('2026-03-01') }),
      event({ advertiser_id: 'a1', publisher_id: 'p1', revenue: '1', event_time: noon('2026-03-02') }),
      event({ advertiser_id: 'a2', publisher_id: 'p2', event_time: noon('2026-03-01') }),
    ]);
    expect(await unconfirmed('a1')).toEqual({ campaigns: ['2026-03-01'], ad_units: [] });
    expect(await unconfirmed('p1')).toEqual({ campaigns: [], ad_units: ['2026-03-02'] });
    expect(await unconfirmed('a2')).toEqual({ campaigns: [], ad_units: [] });
    expect(await unconfirmed('p2')).toEqual({ campaigns: [], ad_units: [] });
  });

  it('stays confirmed when its money is marked confirmed or is zero', async () => {
    await load(test.store, [
      { ...advertised('final', '2026-03-01'), spend: '5', confirmed: true },
      { ...advertised('final', '2026-03-02'), spend: '0', confirmed: false },
      { ...advertised('final', '2026-03-02'), spend: '0.000000' },
      { ...advertised('final', '2026-03-03'), revenue: '7' },
    ]);
    expect((await unconfirmed('final')).campaigns).toEqual([]);
  });

  it('is unconfirmed by a correction, also one that makes the sum of the day zero', async () => {
    await load(test.store, [
      { ...advertised('corrected', '2026-03-01'), spend: '5', confirmed: true },
      { ...advertised('corrected', '2026-03-01'), event_type: 'revenue', spend: '-5' },
      { ...advertised('corrected', '2026-03-02'), spend: '-0.000001' },
    ]);
    expect((await unconfirmed('corrected')).campaigns).toEqual(['2026-03-01', '2026-03-02']);
  });

  it('is confirmed by a confirmation, and unconfirmed again by money that is loaded later', async () => {
    const days = ['2026-03-01', '2026-03-02', '2026-03-03'];
    await load(
      test.store,
      days.map((day) => ({ ...published('late', day), revenue: '1' })),
    );
    expect((await unconfirmed('late')).ad_units).toEqual(days);
    await confirmDays(test.store, 'late', '2026-03-01', '2026-03-02');
    expect((await unconfirmed('late')).ad_units).toEqual(['2026-03-03']);

    const late = [
      { ...published('late', '2026-03-01'), revenue: '2', confirmed: true },
      { ...published('late', '2026-03-01'), revenue: '0' },
      { ...published('late', '2026-03-02'), revenue: '2' },
    ];
    await load(test.store, late);
    expect((await unconfirmed('late')).ad_units).toEqual(['2026-03-02', '2026-03-03']);

    await loadRows(test.store, 'confirmations', [
      ['late', '2026-03-02'],
      ['late', '2026-03-03'],
    ]);
    expect((await unconfirmed('late')).ad_units).toEqual([]);
    await load(test.store, late);
    expect((await unconfirmed('late')).ad_units, 'the same file again').toEqual([]);
  });

  it('that was confirmed before its money came is unconfirmed', async () => {
    await confirmDays(test.store, 'early', '2026-03-01', '2026-03-31');
    await load(test.store, [{ ...advertised('early', '2026-03-05'), spend: '1' }]);
    expect((await unconfirmed('early')).campaigns).toEqual(['2026-03-05']);
  });

  it('without any money is not unconfirmed, confirmed or not', async () => {
    await load(test.store, [advertised('idle', '2026-03-01')]);
    await confirmDays(test.store, 'idle', '2026-03-02', '2026-03-02');
    expect((await unconfirmed('idle')).campaigns).toEqual([]);
  });
});

describe('an account that is both advertiser and publisher', () => {
  it('sees the unconfirmed days of each family alone, and confirms both at once', async () => {
    await load(test.store, [
      event({ advertiser_id: 'both', publisher_id: 'x', spend: '1', event_time: noon('2026-04-01') }),
      event({ advertiser_id: 'x', publisher_id: 'both', revenue: '1', event_time: noon('2026-04-02') }),
    ]);
    expect(await unconfirmed('both')).toEqual({ campaigns: ['2026-04-01'], ad_units: ['2026-04-02'] });
    await confirmDays(test.store, 'x', '2026-04-01', '2026-04-02');
    expect(await unconfirmed('both')).toEqual({ campaigns: ['2026-04-01'], ad_units: ['2026-04-02'] });
    await confirmDays(test.store, 'both', '2026-04-01', '2026-04-02');
    expect(await unconfirmed('both')).toEqual({ campaigns: [], ad_units: [] });
  });
});

describe('the dates of a report', () => {
  const days = ['2026-05-31', '2026-06-01', '2026-06-02', '2026-07-01'];

  it('are sorted, each once, and lie in the range', async () => {
    for (const some of [days.toReversed(), days.slice(0, 2)])
      await load(
        test.store,
        some.map((day) => ({ ...advertised('range', day), spend: '1' })),
      );
    expect((await unconfirmed('range')).campaigns).toEqual(days);
    expect((await unconfirmed('range', '2026-06-01', '2026-06-02')).campaigns).toEqual(days.slice(1, 3));
    expect((await unconfirmed('range', '2026-06-02', '2026-06-02')).campaigns).toEqual(['2026-06-02']);
    expect((await unconfirmed('range', '2026-06-03', '2026-06-30')).campaigns).toEqual([]);
    expect((await unconfirmed('range', '0001-01-01', '9999-12-31')).campaigns).toEqual(days);
  });
});
