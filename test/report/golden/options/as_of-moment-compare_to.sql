-- POST /v1/campaigns/breakdowns/creative
-- {"as_of":"2026-04-03T11:00:00.5+02:00","compare_to":"previous_month","metrics":["spent"]}

SELECT concat('"campaign":', toJSONString(transform(campaign_id, tupleElement((SELECT arraySort(groupArray((n.id, n.name))) FROM ( SELECT id, argMax(h.name, (h.changed_at, h.version)) AS name FROM past_names AS h WHERE account_id = {account:String} AND dictionary = 'campaign_names' AND h.changed_at <= fromUnixTimestamp64Micro({moment:Int64}, 'UTC') GROUP BY id) AS n), 1), tupleElement((SELECT arraySort(groupArray((n.id, n.name))) FROM ( SELECT id, argMax(h.name, (h.changed_at, h.version)) AS name FROM past_names AS h WHERE account_id = {account:String} AND dictionary = 'campaign_names' AND h.changed_at <= fromUnixTimestamp64Micro({moment:Int64}, 'UTC') GROUP BY id) AS n), 2), campaign_id)), ',"creative_headline":', toJSONString(transform(creative_id, tupleElement((SELECT arraySort(groupArray((n.id, n.name))) FROM ( SELECT id, argMax(h.name, (h.changed_at, h.version)) AS name FROM past_names AS h WHERE account_id = {account:String} AND dictionary = 'creative_headlines' AND h.changed_at <= fromUnixTimestamp64Micro({moment:Int64}, 'UTC') GROUP BY id) AS n), 1), tupleElement((SELECT arraySort(groupArray((n.id, n.name))) FROM ( SELECT id, argMax(h.name, (h.changed_at, h.version)) AS name FROM past_names AS h WHERE account_id = {account:String} AND dictionary = 'creative_headlines' AND h.changed_at <= fromUnixTimestamp64Micro({moment:Int64}, 'UTC') GROUP BY id) AS n), 2), '')), ',"creative_id":', toJSONString(creative_id)) AS text, spent, spent_compared, spent - spent_compared AS spent_change
FROM (SELECT campaign_id, creative_id, sum(s.spent) AS spent, sum(s.spent_compared) AS spent_compared FROM (SELECT campaign_id, creative_id, sum(r.spent) AS spent, 0 AS spent_compared FROM (SELECT account_id, day, campaign_id, creative_id, t.impressions AS impressions, t.conversions AS conversions, t.referrals AS referrals, t.spent AS spent
FROM campaigns_creative_date AS t WHERE account_id = {account:String} AND day BETWEEN {first:Date} AND {last:Date} AND NOT day IN {changed_days:Array(Date)}
UNION ALL
SELECT advertiser_id AS account_id, day, campaign_id, creative_id, e.impressions AS impressions, e.conversions AS conversions, e.referrals AS referrals, e.spend AS spent FROM events AS e PREWHERE advertiser_id = {account:String} AND day BETWEEN {first:Date} AND {last:Date} AND day IN {changed_days:Array(Date)} AND loaded_at <= fromUnixTimestamp64Micro({moment:Int64}, 'UTC')
UNION ALL
SELECT advertiser_id AS account_id, day, campaign_id, creative_id, e.impressions AS impressions, e.conversions AS conversions, e.referrals AS referrals, e.spend AS spent FROM past_events AS e PREWHERE advertiser_id = {account:String} AND day BETWEEN {first:Date} AND {last:Date} AND day IN {changed_days:Array(Date)} AND came_by <= fromUnixTimestamp64Micro({moment:Int64}, 'UTC') AND left_at > fromUnixTimestamp64Micro({moment:Int64}, 'UTC')) AS r WHERE account_id = {account:String} AND day BETWEEN {first:Date} AND {last:Date} GROUP BY campaign_id, creative_id
UNION ALL
SELECT campaign_id, creative_id, 0 AS spent, sum(r.spent) AS spent_compared FROM (SELECT account_id, day, campaign_id, creative_id, t.impressions AS impressions, t.conversions AS conversions, t.referrals AS referrals, t.spent AS spent
FROM campaigns_creative_date AS t WHERE account_id = {account:String} AND day BETWEEN {compared_first:Date} AND {compared_last:Date} AND NOT day IN {changed_days:Array(Date)}
UNION ALL
SELECT advertiser_id AS account_id, day, campaign_id, creative_id, e.impressions AS impressions, e.conversions AS conversions, e.referrals AS referrals, e.spend AS spent FROM events AS e PREWHERE advertiser_id = {account:String} AND day BETWEEN {compared_first:Date} AND {compared_last:Date} AND day IN {changed_days:Array(Date)} AND loaded_at <= fromUnixTimestamp64Micro({moment:Int64}, 'UTC')
UNION ALL
SELECT advertiser_id AS account_id, day, campaign_id, creative_id, e.impressions AS impressions, e.conversions AS conversions, e.referrals AS referrals, e.spend AS spent FROM past_events AS e PREWHERE advertiser_id = {account:String} AND day BETWEEN {compared_first:Date} AND {compared_last:Date} AND day IN {changed_days:Array(Date)} AND came_by <= fromUnixTimestamp64Micro({moment:Int64}, 'UTC') AND left_at > fromUnixTimestamp64Micro({moment:Int64}, 'UTC')) AS r WHERE account_id = {account:String} AND day BETWEEN {compared_first:Date} AND {compared_last:Date} GROUP BY campaign_id, creative_id) AS s GROUP BY campaign_id, creative_id)
ORDER BY campaign_id, creative_id
FORMAT Template;
-- parameters
--   account = o'hare "`\ {account:String}
--   first = 2026-03-01
--   last = 2026-03-31
--   compared_first = 2026-02-01
--   compared_last = 2026-02-28
--   moment = 1775206800500000
--   changed_days = 2026-03-02
-- settings
--   additional_table_filters = {'campaigns_creative_date':'account_id = unhex(\'6f27686172652022605c207b6163636f756e743a537472696e677d\')','campaigns_date':'account_id = unhex(\'6f27686172652022605c207b6163636f756e743a537472696e677d\')','confirmations':'account_id = unhex(\'6f27686172652022605c207b6163636f756e743a537472696e677d\')','events':'advertiser_id = unhex(\'6f27686172652022605c207b6163636f756e743a537472696e677d\')','past_events':'advertiser_id = unhex(\'6f27686172652022605c207b6163636f756e743a537472696e677d\')','past_names':'account_id = unhex(\'6f27686172652022605c207b6163636f756e743a537472696e677d\')','past_confirmations':'account_id = unhex(\'6f27686172652022605c207b6163636f756e743a537472696e677d\')'}
--   optimize_move_to_prewhere = 0
--   optimize_use_projections = 0
--   output_format_json_quote_64bit_integers = 0
--   output_format_json_quote_decimals = 0
--   output_format_json_escape_forward_slashes = 0
--   output_format_parallel_formatting = 0
--   output_format_decimal_trailing_zeros = 0
--   format_template_resultset_format = {"result":{"last_update_time":"2026-04-01 00:00:00 UTC","rows":[${data}],"compare_to":{"start_time":"2026-02-01","end_time":"2026-02-28"},"column_metadata":[{"id":"start_time","type":"Date"},{"id":"end_time","type":"Date"},{"id":"campaign","type":"String"},{"id":"creative_headline","type":"String"},{"id":"creative_id","type":"String"},{"id":"spent","type":"Money"},{"id":"spent_compared","type":"Money"},{"id":"spent_change","type":"Money"}],"unconfirmed_revenue_dates":[]}}
--   format_template_row_format = {"start_time":"2026-03-01","end_time":"2026-03-31",${text:Raw},"spent":${spent:Raw},"spent_compared":${spent_compared:Raw},"spent_change":${spent_change:Raw}}
--   format_template_rows_between_delimiter = ,

SELECT toString(row_count) AS row_count, toString(spent) AS total_spent, toString(spent_compared) AS total_spent_compared, toString(spent - spent_compared) AS total_spent_change
FROM (SELECT count() AS row_count, sum(r.spent) AS spent, sum(r.spent_compared) AS spent_compared
FROM (SELECT campaign_id, creative_id, sum(s.spent) AS spent, sum(s.spent_compared) AS spent_compared FROM (SELECT campaign_id, creative_id, sum(r.spent) AS spent, 0 AS spent_compared FROM (SELECT account_id, day, campaign_id, creative_id, t.impressions AS impressions, t.conversions AS conversions, t.referrals AS referrals, t.spent AS spent
FROM campaigns_creative_date AS t WHERE account_id = {account:String} AND day BETWEEN {first:Date} AND {last:Date} AND NOT day IN {changed_days:Array(Date)}
UNION ALL
SELECT advertiser_id AS account_id, day, campaign_id, creative_id, e.impressions AS impressions, e.conversions AS conversions, e.referrals AS referrals, e.spend AS spent FROM events AS e PREWHERE advertiser_id = {account:String} AND day BETWEEN {first:Date} AND {last:Date} AND day IN {changed_days:Array(Date)} AND loaded_at <= fromUnixTimestamp64Micro({moment:Int64}, 'UTC')
UNION ALL
SELECT advertiser_id AS account_id, day, campaign_id, creative_id, e.impressions AS impressions, e.conversions AS conversions, e.referrals AS referrals, e.spend AS spent FROM past_events AS e PREWHERE advertiser_id = {account:String} AND day BETWEEN {first:Date} AND {last:Date} AND day IN {changed_days:Array(Date)} AND came_by <= fromUnixTimestamp64Micro({moment:Int64}, 'UTC') AND left_at > fromUnixTimestamp64Micro({moment:Int64}, 'UTC')) AS r WHERE account_id = {account:String} AND day BETWEEN {first:Date} AND {last:Date} GROUP BY campaign_id, creative_id
UNION ALL
SELECT campaign_id, creative_id, 0 AS spent, sum(r.spent) AS spent_compared FROM (SELECT account_id, day, campaign_id, creative_id, t.impressions AS impressions, t.conversions AS conversions, t.referrals AS referrals, t.spent AS spent
FROM campaigns_creative_date AS t WHERE account_id = {account:String} AND day BETWEEN {compared_first:Date} AND {compared_last:Date} AND NOT day IN {changed_days:Array(Date)}
UNION ALL
SELECT advertiser_id AS account_id, day, campaign_id, creative_id, e.impressions AS impressions, e.conversions AS conversions, e.referrals AS referrals, e.spend AS spent FROM events AS e PREWHERE advertiser_id = {account:String} AND day BETWEEN {compared_first:Date} AND {compared_last:Date} AND day IN {changed_days:Array(Date)} AND loaded_at <= fromUnixTimestamp64Micro({moment:Int64}, 'UTC')
UNION ALL
SELECT advertiser_id AS account_id, day, campaign_id, creative_id, e.impressions AS impressions, e.conversions AS conversions, e.referrals AS referrals, e.spend AS spent FROM past_events AS e PREWHERE advertiser_id = {account:String} AND day BETWEEN {compared_first:Date} AND {compared_last:Date} AND day IN {changed_days:Array(Date)} AND came_by <= fromUnixTimestamp64Micro({moment:Int64}, 'UTC') AND left_at > fromUnixTimestamp64Micro({moment:Int64}, 'UTC')) AS r WHERE account_id = {account:String} AND day BETWEEN {compared_first:Date} AND {compared_last:Date} GROUP BY campaign_id, creative_id) AS s GROUP BY campaign_id, creative_id) AS r);
-- parameters
--   account = o'hare "`\ {account:String}
--   first = 2026-03-01
--   last = 2026-03-31
--   compared_first = 2026-02-01
--   compared_last = 2026-02-28
--   moment = 1775206800500000
--   changed_days = 2026-03-02
-- settings
--   additional_table_filters = {'campaigns_creative_date':'account_id = unhex(\'6f27686172652022605c207b6163636f756e743a537472696e677d\')','campaigns_date':'account_id = unhex(\'6f27686172652022605c207b6163636f756e743a537472696e677d\')','confirmations':'account_id = unhex(\'6f27686172652022605c207b6163636f756e743a537472696e677d\')','events':'advertiser_id = unhex(\'6f27686172652022605c207b6163636f756e743a537472696e677d\')','past_events':'advertiser_id = unhex(\'6f27686172652022605c207b6163636f756e743a537472696e677d\')','past_names':'account_id = unhex(\'6f27686172652022605c207b6163636f756e743a537472696e677d\')','past_confirmations':'account_id = unhex(\'6f27686172652022605c207b6163636f756e743a537472696e677d\')'}
--   optimize_move_to_prewhere = 0
--   optimize_use_projections = 0

SELECT day FROM (
SELECT day, r.unconfirmed_at AS unconfirmed_at, toDateTime64(0, 6, 'UTC') AS confirmed_at
FROM campaigns_date AS r WHERE account_id = {account:String} AND day BETWEEN {first:Date} AND {last:Date} AND NOT day IN {changed_days:Array(Date)}
UNION ALL
SELECT day, if(e.spend != 0 AND NOT e.confirmed, e.loaded_at, toDateTime64(0, 6, 'UTC')) AS unconfirmed_at, toDateTime64(0, 6, 'UTC') AS confirmed_at FROM events AS e PREWHERE advertiser_id = {account:String} AND day BETWEEN {first:Date} AND {last:Date} AND day IN {changed_days:Array(Date)} AND loaded_at <= fromUnixTimestamp64Micro({moment:Int64}, 'UTC')
UNION ALL
SELECT day, if(e.spend != 0 AND NOT e.confirmed, e.loaded_at, toDateTime64(0, 6, 'UTC')) AS unconfirmed_at, toDateTime64(0, 6, 'UTC') AS confirmed_at FROM past_events AS e PREWHERE advertiser_id = {account:String} AND day BETWEEN {first:Date} AND {last:Date} AND day IN {changed_days:Array(Date)} AND came_by <= fromUnixTimestamp64Micro({moment:Int64}, 'UTC') AND left_at > fromUnixTimestamp64Micro({moment:Int64}, 'UTC')
UNION ALL
SELECT day, toDateTime64(0, 6, 'UTC') AS unconfirmed_at, c.confirmed_at AS confirmed_at
FROM past_confirmations AS c WHERE account_id = {account:String} AND day BETWEEN {first:Date} AND {last:Date} AND c.made_at <= fromUnixTimestamp64Micro({moment:Int64}, 'UTC'))
GROUP BY day HAVING max(unconfirmed_at) > max(confirmed_at) ORDER BY day;
-- parameters
--   account = o'hare "`\ {account:String}
--   first = 2026-03-01
--   last = 2026-03-31
--   moment = 1775206800500000
--   changed_days = 2026-03-02
-- settings
--   additional_table_filters = {'campaigns_creative_date':'account_id = unhex(\'6f27686172652022605c207b6163636f756e743a537472696e677d\')','campaigns_date':'account_id = unhex(\'6f27686172652022605c207b6163636f756e743a537472696e677d\')','confirmations':'account_id = unhex(\'6f27686172652022605c207b6163636f756e743a537472696e677d\')','events':'advertiser_id = unhex(\'6f27686172652022605c207b6163636f756e743a537472696e677d\')','past_events':'advertiser_id = unhex(\'6f27686172652022605c207b6163636f756e743a537472696e677d\')','past_names':'account_id = unhex(\'6f27686172652022605c207b6163636f756e743a537472696e677d\')','past_confirmations':'account_id = unhex(\'6f27686172652022605c207b6163636f756e743a537472696e677d\')'}
--   optimize_move_to_prewhere = 0
--   optimize_use_projections = 0
