import { expect, test } from 'vitest';
import type { EventLine } from '../support/events.ts';
import { useLoader } from '../support/loader.ts';
import { answer, lines, Oracle, paths } from '../support/oracle.ts';
import { useService } from '../support/service.ts';
import { useStore } from '../support/store.ts';

const db = useStore();
const service = useService(db);
const { file, ingest } = useLoader(db, () => {});

// Rows of the placement abc are zeros on the 15th.
const days = ['1', '2', '15'];
const banners = ['160 x 600', '728 x 90'];
const placements = ['abc', 'def', '#N/A'];

interface Export {
  readonly text: string;
  /** The same as one event for each count; a row of zeros is no event. */
  readonly events: readonly EventLine[];
  readonly zeros: number;
}

/** One row with several counts, for both sides, as an ad server exports it. */
function exported(): Export {
  const header =
    'month,day,campaign_number,banner,placement,displays,cost,clicks,revenue,post_click_conversions,,';
  const rows = [header];
  const events: EventLine[] = [];
  let zeros = 0;
  const add = (day: string, campaign: string, banner: string, placement: string, n: number) => {
    const zero = day === '15' && placement === 'abc';
    const [displays, clicks, conversions] = zero ? [0, 0, 0] : [n * 100, n * 7, n % 3];
    const [cost, revenue] = zero ? ['0', '0.0'] : [`${n}.0${n}`, n % 4 === 0 ? '0' : `${n * 2}.5`];
    rows.push(
      `May,${day},camp ${campaign},${banner},${placement},${displays},${cost},${clicks},${revenue},${conversions},,`,
    );
    if (zero) zeros++;
    const base = {
      event_time: `2020-05-${day.padStart(2, '0')}T00:00:00Z`,
      advertiser_id: 'company',
      campaign_id: `camp-${campaign}`,
      creative_id: `camp-${campaign}/${banner.replaceAll(' ', '')}`,
      publisher_id: 'network',
      ad_unit_id: banner.replaceAll(' ', ''),
      site_id: placement === '#N/A' ? '' : placement,
    };
    const counted = (event_type: EventLine['event_type'], count = 0) => {
      if (count > 0) events.push({ ...base, event_type, event_id: '', quantity: count });
    };
    counted('impression', displays);
    counted('referral', clicks);
    counted('conversion', conversions);
    if (!zero) events.push({ ...base, event_type: 'revenue', event_id: '', spend: revenue, revenue: cost });
  };
  let n = 0;
  for (const day of days) {
    for (const campaign of ['1', '3']) {
      for (const banner of banners) {
        for (const placement of placements) add(day, campaign, banner, placement, ++n);
      }
    }
  }
  return { text: `${rows.join('\n')}\n`, events, zeros };
}

const mapping = {
  set: { advertiser_id: 'company', publisher_id: 'network' },
  map: { impressions: 'displays', referrals: 'clicks', conversions: 'post_click_conversions' },
  where: '{displays} != 0 OR {clicks} != 0 OR {post_click_conversions} != 0 OR {revenue} != 0 OR {cost} != 0',
  expressions: {
    event_time: "'2020-' || transform({month}, ['May'], ['05'], '') || '-' || leftPad({day}, 2, '0')",
    campaign_id: "replaceAll({campaign_number}, ' ', '-')",
    creative_id: "replaceAll({campaign_number}, ' ', '-') || '/' || replaceAll({banner}, ' ', '')",
    ad_unit_id: "replaceAll({banner}, ' ', '')",
    site_id: "if({placement} = '#N/A', '', {placement})",
    spend: '{revenue}',
    revenue: '{cost}',
  },
  ignore_unknown: true,
};

test('an export of one row with several counts, loaded as it is, gives every report of its counts', async () => {
  const { text, events, zeros } = exported();
  expect(zeros).toBeGreaterThan(0);
  const path = await file('export.csv', text);
  const map = await file('export.json', JSON.stringify(mapping));
  const args = ['--mapping', map, path];
  const dry = await ingest('--dry-run', ...args);
  const rows = text.trim().split('\n').length - 1;
  const counts = { rows: rows - zeros, left_out_rows: zeros, rejected_rows: 0, open_rejects: 0 };
  expect(JSON.parse(dry.stdout)).toMatchObject(counts);
  expect(dry.stderr).toContain(`${rows - zeros} events can be loaded from 1 file`);
  const loaded = await ingest(...args);
  expect({ code: loaded.code, ...JSON.parse(loaded.stdout) }).toMatchObject({ code: 0, ...counts });
  expect(loaded.stderr).toMatch(new RegExp(`, ${zeros} left out by where$`, 'm'));
  expect(JSON.parse((await ingest(...args)).stdout)).toMatchObject({ rows: 0, repeated_rows: rows - zeros });

  const oracle = new Oracle();
  oracle.load(events);
  for (const path of paths) {
    const account = path.startsWith('/v1/campaigns') ? 'company' : 'network';
    for (const range of [
      { start: '2020-05-01', end: '2020-05-31' },
      { start: '2020-05-02', end: '2020-05-15' },
    ]) {
      const [found, expected] = [
        await answer(service, path, account, range),
        oracle.report(path, account, range),
      ];
      expect(lines(found.rows), `${path} ${range.start}`).toEqual(lines(expected.rows));
    }
  }
});
