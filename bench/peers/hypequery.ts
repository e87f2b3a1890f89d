import { createQueryBuilder, selectExpr } from '@hypequery/clickhouse';
import { Hono } from 'hono';
import { addRoutes, type Peer } from './peer.ts';

interface Schema {
  campaigns_date: Columns & { unconfirmed_at: 'DateTime' };
  confirmations: { account_id: 'String'; day: 'Date'; confirmed_at: 'DateTime' };
  campaigns_device_creative_date: Columns & { device: 'String'; creative_id: 'String' };
}
interface Columns {
  [column: string]: 'String' | 'Date' | 'UInt128' | 'Decimal128';
  account_id: 'String';
  day: 'Date';
  campaign_id: 'String';
  impressions: 'UInt128';
  conversions: 'UInt128';
  referrals: 'UInt128';
  spent: 'Decimal128';
}

/** hypequery's typed builder on the same rollups and dictionaries; its rows are returned as JSON. */
export const hypequery: Peer = {
  name: 'hypequery',

  async prepare(_bench, { address }) {
    return { settings: { ...address } };
  },

  async serve({ url, user, password, database }) {
    const db = createQueryBuilder<Schema>({
      url,
      username: user,
      password,
      database,
      integerJsonEncoding: 'server-default',
    });
    return addRoutes(new Hono(), async ({ size, account, period }) => {
      const finest = size === 'finest';
      const keys = finest
        ? (['day', 'campaign_id', 'device', 'creative_id'] as const)
        : (['campaign_id'] as const);
      // The builder follows the columns of each table in types; the two tables differ in the columns of one list.
      const grouped = db
        .table(finest ? 'campaigns_device_creative_date' : 'campaigns_date')
        .select([...keys])
        .sum('impressions', 'impressions_')
        .sum('conversions', 'conversions_')
        .sum('referrals', 'referrals_')
        .sum('spent', 'spent_')
        .where('account_id', 'eq', account)
        .where('day', 'gte', period.start)
        .where('day', 'lte', period.end)
        .groupBy([...keys]);
      const money = db
        .table('campaigns_date')
        .select(['day'])
        .max('unconfirmed_at', 'at')
        .where('account_id', 'eq', account)
        .where('day', 'gte', period.start)
        .where('day', 'lte', period.end)
        .groupBy(['day'])
        .orderBy('day')
        .execute();
      const confirmations = db
        .table('confirmations')
        .select(['day'])
        .max('confirmed_at', 'at')
        .where('account_id', 'eq', account)
        .where('day', 'gte', period.start)
        .where('day', 'lte', period.end)
        .groupBy(['day'])
        .execute();
      const owner = `'${account.replace(/[\\']/g, '\\$&')}'`;
      const name = (dictionary: string, attribute: string, key: string, otherwise: string) =>
        `dictGetOrDefault('${dictionary}', '${attribute}', (${owner}, ${key}), ${otherwise})`;
      const per = (count: string, times: string) =>
        `if(${count} = 0, toDecimal128(0, 7), round(toDecimal128(${times}spent_, 7) / greatest(${count}, 1), 6))`;
      const report = keys
        .reduce(
          (query, key) => query.orderBy(key),
          db
            .from(grouped)
            .select([
              selectExpr(finest ? 'toString(day)' : `'${period.start}'`, 'start_time'),
              selectExpr(finest ? 'toString(day)' : `'${period.end}'`, 'end_time'),
              selectExpr(name('campaign_names', 'name', 'campaign_id', 'campaign_id'), 'campaign'),
              ...(finest
                ? [
                    selectExpr('device', 'device'),
                    selectExpr(
                      name('creative_headlines', 'headline', 'creative_id', "''"),
                      'creative_headline',
                    ),
                    selectExpr('creative_id', 'creative_id'),
                  ]
                : []),
              selectExpr(per('conversions_', ''), 'cpa'),
              selectExpr(per('referrals_', ''), 'cpc'),
              selectExpr(per('impressions_', '1000 * '), 'cpm'),
              selectExpr('impressions_', 'impressions'),
              selectExpr('conversions_', 'conversions'),
              selectExpr('referrals_', 'referrals'),
              selectExpr('spent_', 'spent'),
            ]),
        )
        .settings({
          optimize_aggregation_in_order: finest ? 1 : 0,
          output_format_json_quote_64bit_integers: 0,
          output_format_json_quote_decimals: 0,
        })
        .execute();
      const [rows, unconfirmed, confirmed] = await Promise.all([report, money, confirmations]);
      const confirmedAt = new Map(confirmed.map(({ day, at }) => [String(day), String(at)]));
      return Response.json({
        result: {
          last_update_time: '2026-01-01 00:00:00 UTC',
          rows,
          column_metadata: [],
          unconfirmed_revenue_dates: unconfirmed
            .filter(
              ({ day, at }) => String(at) > (confirmedAt.get(String(day)) ?? '1970-01-01 00:00:00.000000'),
            )
            .map(({ day }) => day),
        },
      });
    });
  },
};
