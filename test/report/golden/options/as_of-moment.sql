-- POST /v1/ad_units/breakdowns/site_date
-- {"as_of":"2026-04-03T09:00:00Z","filters":{"site":["A"]},"totals":true}

(SELECT concat('"start_time":', toJSONString(day), ',"end_time":', toJSONString(day), ',"ad_unit":', toJSONString(transform(ad_unit_id, tupleElement((SELECT arraySort(groupArray((n.id, n.name))) FROM ( SELECT id, argMax(h.name, (h.changed_at, h.version)) AS name FROM past_names AS h WHERE account_id = {account:String} AND dictionary = 'ad_unit_names' AND h.changed_at <= fromUnixTimestamp64Micro({moment:Int64}, 'UTC') GROUP BY id) AS n), 1), tupleElement((SELECT arraySort(groupArray((n.id, n.name))) FROM ( SELECT id, argMax(h.name, (h.changed_at, h.version)) AS name FROM past_names AS h WHERE account_id = {account:String} AND dictionary = 'ad_unit_names' AND h.changed_at <= fromUnixTimestamp64Micro({moment:Int64}, 'UTC') GROUP BY id) AS n), 2), ad_unit_id)), ',"site":', toJSONString(transform(site_id, tupleElement((SELECT arraySort(groupArray((n.id, n.name))) FROM ( SELECT id, argMax(h.name, (h.changed_at, h.version)) AS name FROM past_names AS h WHERE account_id = {account:String} AND dictionary = 'site_names' AND h.changed_at <= fromUnixTimestamp64Micro({moment:Int64}, 'UTC') GROUP BY id) AS n), 1), tupleElement((SELECT arraySort(groupArray((n.id, n.name))) FROM ( SELECT id, argMax(h.name, (h.changed_at, h.version)) AS name FROM past_names AS h WHERE account_id = {account:String} AND dictionary = 'site_names' AND h.changed_at <= fromUnixTimestamp64Micro({moment:Int64}, 'UTC') GROUP BY id) AS n), 2), site_id)), ',') AS text, estimated_revenue, ad_requests, impressions, referrals, if(impressions = 0, toDecimal128(0, 7), round(toDecimal128(1000 * estimated_revenue, 7) / greatest(impressions, 1), 6)) AS cpm, if(ad_requests = 0, toDecimal128(0, 7), round(toDecimal128(impressions, 7) / greatest(ad_requests, 1), 6)) AS fill_rate, if(impressions = 0, toDecimal128(0, 7), round(toDecimal128(referrals, 7) / greatest(impressions, 1), 6)) AS rtr
FROM (SELECT day, ad_unit_id, site_id, sum(r.estimated_revenue) AS estimated_revenue, sum(r.ad_requests) AS ad_requests, sum(r.impressions) AS impressions, sum(r.referrals) AS referrals FROM (SELECT account_id, day, ad_unit_id, site_id, t.estimated_revenue AS estimated_revenue, t.ad_requests AS ad_requests, t.impressions AS impressions, t.referrals AS referrals
FROM ad_units_site_date AS t WHERE account_id = {account:String} AND day BETWEEN {first:Date} AND {last:Date} AND NOT day IN {changed_days:Array(Date)}
UNION ALL
SELECT publisher_id AS account_id, day, ad_unit_id, site_id, e.revenue AS estimated_revenue, e.ad_requests AS ad_requests, e.impressions AS impressions, e.referrals AS referrals FROM events AS e PREWHERE publisher_id = {account:String} AND day BETWEEN {first:Date} AND {last:Date} AND day IN {changed_days:Array(Date)} AND loaded_at <= fromUnixTimestamp64Micro({moment:Int64}, 'UTC')
UNION ALL
SELECT publisher_id AS account_id, day, ad_unit_id, site_id, e.revenue AS estimated_revenue, e.ad_requests AS ad_requests, e.impressions AS impressions, e.referrals AS referrals FROM past_events AS e PREWHERE publisher_id = {account:String} AND day BETWEEN {first:Date} AND {last:Date} AND day IN {changed_days:Array(Date)} AND came_by <= fromUnixTimestamp64Micro({moment:Int64}, 'UTC') AND left_at > fromUnixTimestamp64Micro({moment:Int64}, 'UTC')) AS r WHERE account_id = {account:String} AND day BETWEEN {first:Date} AND {last:Date} AND transform(site_id, tupleElement((SELECT arraySort(groupArray((n.id, n.name))) FROM ( SELECT id, argMax(h.name, (h.changed_at, h.version)) AS name FROM past_names AS h WHERE account_id = {account:String} AND dictionary = 'site_names' AND h.changed_at <= fromUnixTimestamp64Micro({moment:Int64}, 'UTC') GROUP BY id) AS n), 1), tupleElement((SELECT arraySort(groupArray((n.id, n.name))) FROM ( SELECT id, argMax(h.name, (h.changed_at, h.version)) AS name FROM past_names AS h WHERE account_id = {account:String} AND dictionary = 'site_names' AND h.changed_at <= fromUnixTimestamp64Micro({moment:Int64}, 'UTC') GROUP BY id) AS n), 2), site_id) IN {filter_site:Array(String)} GROUP BY day, ad_unit_id, site_id)
ORDER BY day, ad_unit_id, site_id)
UNION ALL
SELECT '' AS text, estimated_revenue, ad_requests, impressions, referrals, if(impressions = 0, toDecimal128(0, 7), round(toDecimal128(1000 * estimated_revenue, 7) / greatest(impressions, 1), 6)) AS cpm, if(ad_requests = 0, toDecimal128(0, 7), round(toDecimal128(impressions, 7) / greatest(ad_requests, 1), 6)) AS fill_rate, if(impressions = 0, toDecimal128(0, 7), round(toDecimal128(referrals, 7) / greatest(impressions, 1), 6)) AS rtr
FROM (SELECT sum(t.estimated_revenue) AS estimated_revenue, sum(t.ad_requests) AS ad_requests, sum(t.impressions) AS impressions, sum(t.referrals) AS referrals FROM (SELECT sum(r.estimated_revenue) AS estimated_revenue, sum(r.ad_requests) AS ad_requests, sum(r.impressions) AS impressions, sum(r.referrals) AS referrals FROM (SELECT account_id, day, ad_unit_id, site_id, t.estimated_revenue AS estimated_revenue, t.ad_requests AS ad_requests, t.impressions AS impressions, t.referrals AS referrals
FROM ad_units_site_date AS t WHERE account_id = {account:String} AND day BETWEEN {first:Date} AND {last:Date} AND NOT day IN {changed_days:Array(Date)}
UNION ALL
SELECT publisher_id AS account_id, day, ad_unit_id, site_id, e.revenue AS estimated_revenue, e.ad_requests AS ad_requests, e.impressions AS impressions, e.referrals AS referrals FROM events AS e PREWHERE publisher_id = {account:String} AND day BETWEEN {first:Date} AND {last:Date} AND day IN {changed_days:Array(Date)} AND loaded_at <= fromUnixTimestamp64Micro({moment:Int64}, 'UTC')
UNION ALL
SELECT publisher_id AS account_id, day, ad_unit_id, site_id, e.revenue AS estimated_revenue, e.ad_requests AS ad_requests, e.impressions AS impressions, e.referrals AS referrals FROM past_events AS e PREWHERE publisher_id = {account:String} AND day BETWEEN {first:Date} AND {last:Date} AND day IN {changed_days:Array(Date)} AND came_by <= fromUnixTimestamp64Micro({moment:Int64}, 'UTC') AND left_at > fromUnixTimestamp64Micro({moment:Int64}, 'UTC')) AS r WHERE account_id = {account:String} AND day BETWEEN {first:Date} AND {last:Date} AND transform(site_id, tupleElement((SELECT arraySort(groupArray((n.id, n.name))) FROM ( SELECT id, argMax(h.name, (h.changed_at, h.version)) AS name FROM past_names AS h WHERE account_id = {account:String} AND dictionary = 'site_names' AND h.changed_at <= fromUnixTimestamp64Micro({moment:Int64}, 'UTC') GROUP BY id) AS n), 1), tupleElement((SELECT arraySort(groupArray((n.id, n.name))) FROM ( SELECT id, argMax(h.name, (h.changed_at, h.version)) AS name FROM past_names AS h WHERE account_id = {account:String} AND dictionary = 'site_names' AND h.changed_at <= fromUnixTimestamp64Micro({moment:Int64}, 'UTC') GROUP BY id) AS n), 2), site_id) IN {filter_site:Array(String)}) AS t GROUP BY materialize(0) WITH TOTALS HAVING 0)
FORMAT Template;
-- parameters
--   account = o'hare "`\ {account:String}
--   first = 2026-03-01
--   last = 2026-03-31
--   moment = 1775206800000000
--   changed_days = 2026-03-02
--   filter_site = A
-- settings
--   totals_mode = before_having
--   additional_table_filters = {'ad_units_site_date':'account_id = unhex(\'6f27686172652022605c207b6163636f756e743a537472696e677d\')','ad_units_date':'account_id = unhex(\'6f27686172652022605c207b6163636f756e743a537472696e677d\')','confirmations':'account_id = unhex(\'6f27686172652022605c207b6163636f756e743a537472696e677d\')','events':'publisher_id = unhex(\'6f27686172652022605c207b6163636f756e743a537472696e677d\')','past_events':'publisher_id = unhex(\'6f27686172652022605c207b6163636f756e743a537472696e677d\')','past_names':'account_id = unhex(\'6f27686172652022605c207b6163636f756e743a537472696e677d\')','past_confirmations':'account_id = unhex(\'6f27686172652022605c207b6163636f756e743a537472696e677d\')'}
--   optimize_move_to_prewhere = 0
--   optimize_use_projections = 0
--   output_format_json_quote_64bit_integers = 0
--   output_format_json_quote_decimals = 0
--   output_format_json_escape_forward_slashes = 0
--   output_format_parallel_formatting = 0
--   output_format_decimal_trailing_zeros = 0
--   format_template_resultset_format = {"result":{"last_update_time":"2026-04-01 00:00:00 UTC","rows":[${data}],"totals":${totals},"column_metadata":[{"id":"start_time","type":"Date"},{"id":"end_time","type":"Date"},{"id":"ad_unit","type":"String"},{"id":"site","type":"String"},{"id":"estimated_revenue","type":"Money"},{"id":"ad_requests","type":"Numeric"},{"id":"impressions","type":"Numeric"},{"id":"referrals","type":"Numeric"},{"id":"cpm","type":"Money"},{"id":"fill_rate","type":"Numeric"},{"id":"rtr","type":"Numeric"}],"unconfirmed_revenue_dates":[]}}
--   format_template_row_format = {${text:Raw}"estimated_revenue":${estimated_revenue:Raw},"ad_requests":${ad_requests:Raw},"impressions":${impressions:Raw},"referrals":${referrals:Raw},"cpm":${cpm:Raw},"fill_rate":${fill_rate:Raw},"rtr":${rtr:Raw}}
--   format_template_rows_between_delimiter = ,

SELECT toString(row_count) AS row_count, toString(estimated_revenue) AS total_estimated_revenue, toString(ad_requests) AS total_ad_requests, toString(impressions) AS total_impressions, toString(referrals) AS total_referrals, toString(if(impressions = 0, toDecimal128(0, 7), round(toDecimal128(1000 * estimated_revenue, 7) / greatest(impressions, 1), 6))) AS total_cpm, toString(if(ad_requests = 0, toDecimal128(0, 7), round(toDecimal128(impressions, 7) / greatest(ad_requests, 1), 6))) AS total_fill_rate, toString(if(impressions = 0, toDecimal128(0, 7), round(toDecimal128(referrals, 7) / greatest(impressions, 1), 6))) AS total_rtr
FROM (SELECT count() AS row_count, sum(r.estimated_revenue) AS estimated_revenue, sum(r.ad_requests) AS ad_requests, sum(r.impressions) AS impressions, sum(r.referrals) AS referrals
FROM (SELECT day, ad_unit_id, site_id, sum(r.estimated_revenue) AS estimated_revenue, sum(r.ad_requests) AS ad_requests, sum(r.impressions) AS impressions, sum(r.referrals) AS referrals FROM (SELECT account_id, day, ad_unit_id, site_id, t.estimated_revenue AS estimated_revenue, t.ad_requests AS ad_requests, t.impressions AS impressions, t.referrals AS referrals
FROM ad_units_site_date AS t WHERE account_id = {account:String} AND day BETWEEN {first:Date} AND {last:Date} AND NOT day IN {changed_days:Array(Date)}
UNION ALL
SELECT publisher_id AS account_id, day, ad_unit_id, site_id, e.revenue AS estimated_revenue, e.ad_requests AS ad_requests, e.impressions AS impressions, e.referrals AS referrals FROM events AS e PREWHERE publisher_id = {account:String} AND day BETWEEN {first:Date} AND {last:Date} AND day IN {changed_days:Array(Date)} AND loaded_at <= fromUnixTimestamp64Micro({moment:Int64}, 'UTC')
UNION ALL
SELECT publisher_id AS account_id, day, ad_unit_id, site_id, e.revenue AS estimated_revenue, e.ad_requests AS ad_requests, e.impressions AS impressions, e.referrals AS referrals FROM past_events AS e PREWHERE publisher_id = {account:String} AND day BETWEEN {first:Date} AND {last:Date} AND day IN {changed_days:Array(Date)} AND came_by <= fromUnixTimestamp64Micro({moment:Int64}, 'UTC') AND left_at > fromUnixTimestamp64Micro({moment:Int64}, 'UTC')) AS r WHERE account_id = {account:String} AND day BETWEEN {first:Date} AND {last:Date} AND transform(site_id, tupleElement((SELECT arraySort(groupArray((n.id, n.name))) FROM ( SELECT id, argMax(h.name, (h.changed_at, h.version)) AS name FROM past_names AS h WHERE account_id = {account:String} AND dictionary = 'site_names' AND h.changed_at <= fromUnixTimestamp64Micro({moment:Int64}, 'UTC') GROUP BY id) AS n), 1), tupleElement((SELECT arraySort(groupArray((n.id, n.name))) FROM ( SELECT id, argMax(h.name, (h.changed_at, h.version)) AS name FROM past_names AS h WHERE account_id = {account:String} AND dictionary = 'site_names' AND h.changed_at <= fromUnixTimestamp64Micro({moment:Int64}, 'UTC') GROUP BY id) AS n), 2), site_id) IN {filter_site:Array(String)} GROUP BY day, ad_unit_id, site_id) AS r);
-- parameters
--   account = o'hare "`\ {account:String}
--   first = 2026-03-01
--   last = 2026-03-31
--   moment = 1775206800000000
--   changed_days = 2026-03-02
--   filter_site = A
-- settings
--   additional_table_filters = {'ad_units_site_date':'account_id = unhex(\'6f27686172652022605c207b6163636f756e743a537472696e677d\')','ad_units_date':'account_id = unhex(\'6f27686172652022605c207b6163636f756e743a537472696e677d\')','confirmations':'account_id = unhex(\'6f27686172652022605c207b6163636f756e743a537472696e677d\')','events':'publisher_id = unhex(\'6f27686172652022605c207b6163636f756e743a537472696e677d\')','past_events':'publisher_id = unhex(\'6f27686172652022605c207b6163636f756e743a537472696e677d\')','past_names':'account_id = unhex(\'6f27686172652022605c207b6163636f756e743a537472696e677d\')','past_confirmations':'account_id = unhex(\'6f27686172652022605c207b6163636f756e743a537472696e677d\')'}
--   optimize_move_to_prewhere = 0
--   optimize_use_projections = 0

SELECT day FROM (
SELECT day, r.unconfirmed_at AS unconfirmed_at, toDateTime64(0, 6, 'UTC') AS confirmed_at
FROM ad_units_date AS r WHERE account_id = {account:String} AND day BETWEEN {first:Date} AND {last:Date} AND NOT day IN {changed_days:Array(Date)}
UNION ALL
SELECT day, if(e.revenue != 0 AND NOT e.confirmed, e.loaded_at, toDateTime64(0, 6, 'UTC')) AS unconfirmed_at, toDateTime64(0, 6, 'UTC') AS confirmed_at FROM events AS e PREWHERE publisher_id = {account:String} AND day BETWEEN {first:Date} AND {last:Date} AND day IN {changed_days:Array(Date)} AND loaded_at <= fromUnixTimestamp64Micro({moment:Int64}, 'UTC')
UNION ALL
SELECT day, if(e.revenue != 0 AND NOT e.confirmed, e.loaded_at, toDateTime64(0, 6, 'UTC')) AS unconfirmed_at, toDateTime64(0, 6, 'UTC') AS confirmed_at FROM past_events AS e PREWHERE publisher_id = {account:String} AND day BETWEEN {first:Date} AND {last:Date} AND day IN {changed_days:Array(Date)} AND came_by <= fromUnixTimestamp64Micro({moment:Int64}, 'UTC') AND left_at > fromUnixTimestamp64Micro({moment:Int64}, 'UTC')
UNION ALL
SELECT day, toDateTime64(0, 6, 'UTC') AS unconfirmed_at, c.confirmed_at AS confirmed_at
FROM past_confirmations AS c WHERE account_id = {account:String} AND day BETWEEN {first:Date} AND {last:Date} AND c.made_at <= fromUnixTimestamp64Micro({moment:Int64}, 'UTC'))
GROUP BY day HAVING max(unconfirmed_at) > max(confirmed_at) ORDER BY day;
-- parameters
--   account = o'hare "`\ {account:String}
--   first = 2026-03-01
--   last = 2026-03-31
--   moment = 1775206800000000
--   changed_days = 2026-03-02
-- settings
--   additional_table_filters = {'ad_units_site_date':'account_id = unhex(\'6f27686172652022605c207b6163636f756e743a537472696e677d\')','ad_units_date':'account_id = unhex(\'6f27686172652022605c207b6163636f756e743a537472696e677d\')','confirmations':'account_id = unhex(\'6f27686172652022605c207b6163636f756e743a537472696e677d\')','events':'publisher_id = unhex(\'6f27686172652022605c207b6163636f756e743a537472696e677d\')','past_events':'publisher_id = unhex(\'6f27686172652022605c207b6163636f756e743a537472696e677d\')','past_names':'account_id = unhex(\'6f27686172652022605c207b6163636f756e743a537472696e677d\')','past_confirmations':'account_id = unhex(\'6f27686172652022605c207b6163636f756e743a537472696e677d\')'}
--   optimize_move_to_prewhere = 0
--   optimize_use_projections = 0
