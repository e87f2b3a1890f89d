-- POST /v1/ad_units/adjustments
-- {"start_time":"2026-03-01","end_time":"2026-03-31","filters":{"device":["mobile"]},"limit":5,"totals":true}

(SELECT concat('"start_time":', toJSONString(day), ',"end_time":', toJSONString(day), ',"ad_unit":', dictGetOrDefault('ad_unit_names', 'name_json', ({account:String}, ad_unit_id), toJSONString(ad_unit_id)), ',"ad_unit_id":', toJSONString(ad_unit_id), ',"device":', toJSONString(device), ',"site":', dictGetOrDefault('site_names', 'name_json', ({account:String}, site_id), toJSONString(site_id)), ',"site_id":', toJSONString(site_id), ',') AS text, estimated_revenue, ad_requests, impressions, referrals
FROM (SELECT day, ad_unit_id, device, site_id, sum(r.estimated_revenue) AS estimated_revenue, sum(r.ad_requests) AS ad_requests, sum(r.impressions) AS impressions, sum(r.referrals) AS referrals FROM (SELECT account_id, day, ad_unit_id, device, site_id, t.estimated_revenue AS estimated_revenue, toInt128(t.ad_requests) AS ad_requests, toInt128(t.impressions) AS impressions, toInt128(t.referrals) AS referrals FROM ad_units_device_site_date AS t WHERE account_id = {account:String} AND day BETWEEN {first:Date} AND {last:Date}
UNION ALL
SELECT account_id, day, ad_unit_id, device, site_id, -t.estimated_revenue AS estimated_revenue, -toInt128(t.ad_requests) AS ad_requests, -toInt128(t.impressions) AS impressions, -toInt128(t.referrals) AS referrals FROM ad_units_closed AS t FINAL WHERE account_id = {account:String} AND day BETWEEN {first:Date} AND {last:Date} AND revision IN {revisions:Array(String)}) AS r WHERE account_id = {account:String} AND day BETWEEN {first:Date} AND {last:Date} AND device IN {filter_device:Array(String)} GROUP BY day, ad_unit_id, device, site_id HAVING estimated_revenue != 0 OR ad_requests != 0 OR impressions != 0 OR referrals != 0)
ORDER BY day, ad_unit_id, device, site_id
LIMIT {limit:UInt32})
UNION ALL
SELECT '' AS text, estimated_revenue, ad_requests, impressions, referrals
FROM (SELECT sum(t.estimated_revenue) AS estimated_revenue, sum(t.ad_requests) AS ad_requests, sum(t.impressions) AS impressions, sum(t.referrals) AS referrals FROM (SELECT sum(r.estimated_revenue) AS estimated_revenue, sum(r.ad_requests) AS ad_requests, sum(r.impressions) AS impressions, sum(r.referrals) AS referrals FROM (SELECT account_id, day, ad_unit_id, device, site_id, t.estimated_revenue AS estimated_revenue, toInt128(t.ad_requests) AS ad_requests, toInt128(t.impressions) AS impressions, toInt128(t.referrals) AS referrals FROM ad_units_device_site_date AS t WHERE account_id = {account:String} AND day BETWEEN {first:Date} AND {last:Date}
UNION ALL
SELECT account_id, day, ad_unit_id, device, site_id, -t.estimated_revenue AS estimated_revenue, -toInt128(t.ad_requests) AS ad_requests, -toInt128(t.impressions) AS impressions, -toInt128(t.referrals) AS referrals FROM ad_units_closed AS t FINAL WHERE account_id = {account:String} AND day BETWEEN {first:Date} AND {last:Date} AND revision IN {revisions:Array(String)}) AS r WHERE account_id = {account:String} AND day BETWEEN {first:Date} AND {last:Date} AND device IN {filter_device:Array(String)}) AS t GROUP BY materialize(0) WITH TOTALS HAVING 0)
LIMIT {limit:UInt32}
FORMAT Template;
-- parameters
--   account = o'hare "`\ {account:String}
--   first = 2026-03-01
--   last = 2026-03-31
--   revisions = aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa
--   filter_device = mobile
--   limit = 5
-- settings
--   optimize_read_in_order = 0
--   exact_rows_before_limit = 1
--   totals_mode = before_having
--   additional_table_filters = {'ad_units_device_site_date':'account_id = unhex(\'6f27686172652022605c207b6163636f756e743a537472696e677d\')','ad_units_date':'account_id = unhex(\'6f27686172652022605c207b6163636f756e743a537472696e677d\')','confirmations':'account_id = unhex(\'6f27686172652022605c207b6163636f756e743a537472696e677d\')','ad_units_closed':'account_id = unhex(\'6f27686172652022605c207b6163636f756e743a537472696e677d\')','closes':'account_id = unhex(\'6f27686172652022605c207b6163636f756e743a537472696e677d\')'}
--   optimize_move_to_prewhere = 0
--   optimize_use_projections = 0
--   output_format_json_quote_64bit_integers = 0
--   output_format_json_quote_decimals = 0
--   output_format_json_escape_forward_slashes = 0
--   output_format_parallel_formatting = 0
--   output_format_decimal_trailing_zeros = 0
--   format_template_resultset_format = "rows":[${data}],"totals":${totals},"row_count":${rows_before_limit:Raw},"column_metadata":[{"id":"start_time","type":"Date"},{"id":"end_time","type":"Date"},{"id":"ad_unit","type":"String"},{"id":"ad_unit_id","type":"String"},{"id":"device","type":"String"},{"id":"site","type":"String"},{"id":"site_id","type":"String"},{"id":"estimated_revenue","type":"Money"},{"id":"ad_requests","type":"Numeric"},{"id":"impressions","type":"Numeric"},{"id":"referrals","type":"Numeric"}],"unconfirmed_revenue_dates":
--   format_template_row_format = {${text:Raw}"estimated_revenue":${estimated_revenue:Raw},"ad_requests":${ad_requests:Raw},"impressions":${impressions:Raw},"referrals":${referrals:Raw}}
--   format_template_rows_between_delimiter = ,

SELECT toString(row_count) AS row_count, toString(estimated_revenue) AS total_estimated_revenue, toString(ad_requests) AS total_ad_requests, toString(impressions) AS total_impressions, toString(referrals) AS total_referrals
FROM (SELECT count() AS row_count, sum(r.estimated_revenue) AS estimated_revenue, sum(r.ad_requests) AS ad_requests, sum(r.impressions) AS impressions, sum(r.referrals) AS referrals
FROM (SELECT day, ad_unit_id, device, site_id, sum(r.estimated_revenue) AS estimated_revenue, sum(r.ad_requests) AS ad_requests, sum(r.impressions) AS impressions, sum(r.referrals) AS referrals FROM (SELECT account_id, day, ad_unit_id, device, site_id, t.estimated_revenue AS estimated_revenue, toInt128(t.ad_requests) AS ad_requests, toInt128(t.impressions) AS impressions, toInt128(t.referrals) AS referrals FROM ad_units_device_site_date AS t WHERE account_id = {account:String} AND day BETWEEN {first:Date} AND {last:Date}
UNION ALL
SELECT account_id, day, ad_unit_id, device, site_id, -t.estimated_revenue AS estimated_revenue, -toInt128(t.ad_requests) AS ad_requests, -toInt128(t.impressions) AS impressions, -toInt128(t.referrals) AS referrals FROM ad_units_closed AS t FINAL WHERE account_id = {account:String} AND day BETWEEN {first:Date} AND {last:Date} AND revision IN {revisions:Array(String)}) AS r WHERE account_id = {account:String} AND day BETWEEN {first:Date} AND {last:Date} AND device IN {filter_device:Array(String)} GROUP BY day, ad_unit_id, device, site_id HAVING estimated_revenue != 0 OR ad_requests != 0 OR impressions != 0 OR referrals != 0) AS r);
-- parameters
--   account = o'hare "`\ {account:String}
--   first = 2026-03-01
--   last = 2026-03-31
--   revisions = aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa
--   filter_device = mobile
-- settings
--   additional_table_filters = {'ad_units_device_site_date':'account_id = unhex(\'6f27686172652022605c207b6163636f756e743a537472696e677d\')','ad_units_date':'account_id = unhex(\'6f27686172652022605c207b6163636f756e743a537472696e677d\')','confirmations':'account_id = unhex(\'6f27686172652022605c207b6163636f756e743a537472696e677d\')','ad_units_closed':'account_id = unhex(\'6f27686172652022605c207b6163636f756e743a537472696e677d\')','closes':'account_id = unhex(\'6f27686172652022605c207b6163636f756e743a537472696e677d\')'}
--   optimize_move_to_prewhere = 0
--   optimize_use_projections = 0

(SELECT concat('"start_time":', toJSONString(day), ',"end_time":', toJSONString(day), ',"ad_unit":', dictGetOrDefault('ad_unit_names', 'name_json', ({account:String}, ad_unit_id), toJSONString(ad_unit_id)), ',"ad_unit_id":', toJSONString(ad_unit_id), ',"device":', toJSONString(device), ',"site":', dictGetOrDefault('site_names', 'name_json', ({account:String}, site_id), toJSONString(site_id)), ',"site_id":', toJSONString(site_id), ',"changed_at":', toJSONString(changed_at), ',"change":', toJSONString(change), ',"load":', toJSONString(load), ',"reason":', toJSONString(reason), ',') AS text, estimated_revenue, ad_requests, impressions, referrals
FROM (SELECT * FROM (SELECT day, ad_unit_id, device, site_id, changed_at, change, load, reason, sum(r.estimated_revenue) AS estimated_revenue, sum(r.ad_requests) AS ad_requests, sum(r.impressions) AS impressions, sum(r.referrals) AS referrals FROM (SELECT account_id, day, ad_unit_id, device, site_id, '' AS changed_at, 'unknown' AS change, '' AS load, '' AS reason, t.estimated_revenue AS estimated_revenue, toInt128(t.ad_requests) AS ad_requests, toInt128(t.impressions) AS impressions, toInt128(t.referrals) AS referrals FROM ad_units_device_site_date AS t WHERE account_id = {account:String} AND day BETWEEN {first:Date} AND {last:Date}
UNION ALL
SELECT account_id, day, ad_unit_id, device, site_id, '' AS changed_at, 'unknown' AS change, '' AS load, '' AS reason, -t.estimated_revenue AS estimated_revenue, -toInt128(t.ad_requests) AS ad_requests, -toInt128(t.impressions) AS impressions, -toInt128(t.referrals) AS referrals FROM ad_units_closed AS t FINAL WHERE account_id = {account:String} AND day BETWEEN {first:Date} AND {last:Date} AND revision IN {revisions:Array(String)}
UNION ALL
SELECT account_id, day, ad_unit_id, device, site_id, if(is_told, g.changed_at, '') AS changed_at, if(is_told, g.change, 'unknown') AS change, if(is_told, g.load, '') AS load, if(is_told, g.reason, '') AS reason, if(is_told, g.estimated_revenue, -g.estimated_revenue) AS estimated_revenue, if(is_told, g.ad_requests, -g.ad_requests) AS ad_requests, if(is_told, g.impressions, -g.impressions) AS impressions, if(is_told, g.referrals, -g.referrals) AS referrals FROM (
SELECT any(n.account_id) AS account_id, day, ad_unit_id, device, site_id, replaceOne(toString(max(n.at)), ' ', 'T') || 'Z' AS changed_at, if(n.chunk = '', 'by_hand', 'loaded') AS change, c.load AS load, reason,
sum(n.estimated_revenue) AS estimated_revenue, sum(n.ad_requests) AS ad_requests, sum(n.impressions) AS impressions, sum(n.referrals) AS referrals FROM (
SELECT any(e.publisher_id) AS account_id, day, ad_unit_id, device, site_id, toString(e.chunk) AS chunk, max(e.loaded_at) AS at, toString(e.reason) AS reason, sum(e.revenue) AS estimated_revenue, toInt128(sum(e.ad_requests)) AS ad_requests, toInt128(sum(e.impressions)) AS impressions, toInt128(sum(e.referrals)) AS referrals FROM events AS e PREWHERE publisher_id = {account:String} AND day BETWEEN {first:Date} AND {last:Date} AND day GLOBAL IN (SELECT day FROM ad_units_changes AS d WHERE account_id = {account:String} AND day BETWEEN {first:Date} AND {last:Date} AND d.changed_at > fromUnixTimestamp64Micro({closed_at:Map(UInt32, Int64)}[toYYYYMM(day)], 'UTC') - INTERVAL 1 MINUTE UNION ALL SELECT day FROM ad_units_date AS a WHERE account_id = {account:String} AND day BETWEEN {first:Date} AND {last:Date} AND a.changed_at > fromUnixTimestamp64Micro({closed_at:Map(UInt32, Int64)}[toYYYYMM(day)], 'UTC') - INTERVAL 1 MINUTE) AND loaded_at > fromUnixTimestamp64Micro({closed_at:Map(UInt32, Int64)}[toYYYYMM(day)], 'UTC') AND chunk != 'folded' GROUP BY day, ad_unit_id, device, site_id, chunk, reason) AS n
LEFT JOIN (SELECT chunk, max(tuple(toUInt64(c.loaded_at) > 0, c.sent_at, c.load_id)).3 AS load FROM load_chunks AS c WHERE chunk GLOBAL IN (SELECT toString(e.chunk) FROM events AS e PREWHERE publisher_id = {account:String} AND day BETWEEN {first:Date} AND {last:Date} AND day GLOBAL IN (SELECT day FROM ad_units_changes AS d WHERE account_id = {account:String} AND day BETWEEN {first:Date} AND {last:Date} AND d.changed_at > fromUnixTimestamp64Micro({closed_at:Map(UInt32, Int64)}[toYYYYMM(day)], 'UTC') - INTERVAL 1 MINUTE UNION ALL SELECT day FROM ad_units_date AS a WHERE account_id = {account:String} AND day BETWEEN {first:Date} AND {last:Date} AND a.changed_at > fromUnixTimestamp64Micro({closed_at:Map(UInt32, Int64)}[toYYYYMM(day)], 'UTC') - INTERVAL 1 MINUTE) AND loaded_at > fromUnixTimestamp64Micro({closed_at:Map(UInt32, Int64)}[toYYYYMM(day)], 'UTC') AND chunk != 'folded') GROUP BY chunk) AS c ON c.chunk = n.chunk
GROUP BY day, ad_unit_id, device, site_id, change, load, reason
UNION ALL
SELECT account_id, day, ad_unit_id, device, site_id, changed_at, change, load, reason, estimated_revenue, ad_requests, impressions, referrals FROM (
SELECT any(e.publisher_id) AS account_id, day, ad_unit_id, device, site_id, replaceOne(toString(e.left_at), ' ', 'T') || 'Z' AS changed_at, if(e.replaced, 'replaced', 'taken_back') AS change, toString(e.load_id) AS load, toString(e.reason) AS reason, -sum(e.revenue) AS estimated_revenue, -toInt128(sum(e.ad_requests)) AS ad_requests, -toInt128(sum(e.impressions)) AS impressions, -toInt128(sum(e.referrals)) AS referrals FROM past_events AS e PREWHERE publisher_id = {account:String} AND day BETWEEN {first:Date} AND {last:Date} AND day GLOBAL IN (SELECT day FROM ad_units_changes AS d WHERE account_id = {account:String} AND day BETWEEN {first:Date} AND {last:Date} AND d.changed_at > fromUnixTimestamp64Micro({closed_at:Map(UInt32, Int64)}[toYYYYMM(day)], 'UTC') - INTERVAL 1 MINUTE UNION ALL SELECT day FROM ad_units_date AS a WHERE account_id = {account:String} AND day BETWEEN {first:Date} AND {last:Date} AND a.changed_at > fromUnixTimestamp64Micro({closed_at:Map(UInt32, Int64)}[toYYYYMM(day)], 'UTC') - INTERVAL 1 MINUTE) AND came_by <= fromUnixTimestamp64Micro({closed_at:Map(UInt32, Int64)}[toYYYYMM(day)], 'UTC') AND left_at > fromUnixTimestamp64Micro({closed_at:Map(UInt32, Int64)}[toYYYYMM(day)], 'UTC')
WHERE (toYYYYMM(day), left_at) GLOBAL IN (SELECT month, began_at FROM rewrites AS w FINAL WHERE toUInt64(w.ended_at) > 0 AND NOT w.lost)
GROUP BY day, ad_unit_id, device, site_id, changed_at, change, load, reason)
) AS g ARRAY JOIN [true, false] AS is_told) AS r WHERE account_id = {account:String} AND day BETWEEN {first:Date} AND {last:Date} AND device IN {filter_device:Array(String)} GROUP BY day, ad_unit_id, device, site_id, changed_at, change, load, reason HAVING estimated_revenue != 0 OR ad_requests != 0 OR impressions != 0 OR referrals != 0) AS g QUALIFY sum(g.estimated_revenue) OVER (PARTITION BY day, ad_unit_id, device, site_id) != 0 OR sum(g.ad_requests) OVER (PARTITION BY day, ad_unit_id, device, site_id) != 0 OR sum(g.impressions) OVER (PARTITION BY day, ad_unit_id, device, site_id) != 0 OR sum(g.referrals) OVER (PARTITION BY day, ad_unit_id, device, site_id) != 0)
ORDER BY day, ad_unit_id, device, site_id, changed_at, change, load, reason
LIMIT {limit:UInt32})
UNION ALL
SELECT '' AS text, estimated_revenue, ad_requests, impressions, referrals
FROM (SELECT sum(t.estimated_revenue) AS estimated_revenue, sum(t.ad_requests) AS ad_requests, sum(t.impressions) AS impressions, sum(t.referrals) AS referrals FROM (SELECT sum(r.estimated_revenue) AS estimated_revenue, sum(r.ad_requests) AS ad_requests, sum(r.impressions) AS impressions, sum(r.referrals) AS referrals FROM (SELECT account_id, day, ad_unit_id, device, site_id, t.estimated_revenue AS estimated_revenue, toInt128(t.ad_requests) AS ad_requests, toInt128(t.impressions) AS impressions, toInt128(t.referrals) AS referrals FROM ad_units_device_site_date AS t WHERE account_id = {account:String} AND day BETWEEN {first:Date} AND {last:Date}
UNION ALL
SELECT account_id, day, ad_unit_id, device, site_id, -t.estimated_revenue AS estimated_revenue, -toInt128(t.ad_requests) AS ad_requests, -toInt128(t.impressions) AS impressions, -toInt128(t.referrals) AS referrals FROM ad_units_closed AS t FINAL WHERE account_id = {account:String} AND day BETWEEN {first:Date} AND {last:Date} AND revision IN {revisions:Array(String)}) AS r WHERE account_id = {account:String} AND day BETWEEN {first:Date} AND {last:Date} AND device IN {filter_device:Array(String)}) AS t GROUP BY materialize(0) WITH TOTALS HAVING 0)
LIMIT {limit:UInt32}
FORMAT Template;
-- parameters
--   account = o'hare "`\ {account:String}
--   first = 2026-03-01
--   last = 2026-03-31
--   revisions = aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa
--   closed_at = {202603:1}
--   filter_device = mobile
--   limit = 5
-- settings
--   optimize_read_in_order = 0
--   exact_rows_before_limit = 1
--   totals_mode = before_having
--   additional_table_filters = {'ad_units_device_site_date':'account_id = unhex(\'6f27686172652022605c207b6163636f756e743a537472696e677d\')','ad_units_date':'account_id = unhex(\'6f27686172652022605c207b6163636f756e743a537472696e677d\')','confirmations':'account_id = unhex(\'6f27686172652022605c207b6163636f756e743a537472696e677d\')','ad_units_closed':'account_id = unhex(\'6f27686172652022605c207b6163636f756e743a537472696e677d\')','closes':'account_id = unhex(\'6f27686172652022605c207b6163636f756e743a537472696e677d\')','events':'publisher_id = unhex(\'6f27686172652022605c207b6163636f756e743a537472696e677d\')','past_events':'publisher_id = unhex(\'6f27686172652022605c207b6163636f756e743a537472696e677d\')','ad_units_changes':'account_id = unhex(\'6f27686172652022605c207b6163636f756e743a537472696e677d\')'}
--   optimize_move_to_prewhere = 0
--   optimize_use_projections = 0
--   output_format_json_quote_64bit_integers = 0
--   output_format_json_quote_decimals = 0
--   output_format_json_escape_forward_slashes = 0
--   output_format_parallel_formatting = 0
--   output_format_decimal_trailing_zeros = 0
--   format_template_resultset_format = "rows":[${data}],"totals":${totals},"row_count":${rows_before_limit:Raw},"column_metadata":[{"id":"start_time","type":"Date"},{"id":"end_time","type":"Date"},{"id":"ad_unit","type":"String"},{"id":"ad_unit_id","type":"String"},{"id":"device","type":"String"},{"id":"site","type":"String"},{"id":"site_id","type":"String"},{"id":"changed_at","type":"String"},{"id":"change","type":"String"},{"id":"load","type":"String"},{"id":"reason","type":"String"},{"id":"estimated_revenue","type":"Money"},{"id":"ad_requests","type":"Numeric"},{"id":"impressions","type":"Numeric"},{"id":"referrals","type":"Numeric"}],"unconfirmed_revenue_dates":
--   format_template_row_format = {${text:Raw}"estimated_revenue":${estimated_revenue:Raw},"ad_requests":${ad_requests:Raw},"impressions":${impressions:Raw},"referrals":${referrals:Raw}}
--   format_template_rows_between_delimiter = ,
