-- POST /v1/campaigns/adjustments
-- {"start_time":"2026-03-01","end_time":"2026-03-31","filters":{"device":["mobile"]},"limit":5,"totals":true}

(SELECT concat('"start_time":', toJSONString(day), ',"end_time":', toJSONString(day), ',"campaign":', dictGetOrDefault('campaign_names', 'name_json', ({account:String}, campaign_id), toJSONString(campaign_id)), ',"campaign_id":', toJSONString(campaign_id), ',"device":', toJSONString(device), ',"creative_headline":', dictGetOrDefault('creative_headlines', 'headline_json', ({account:String}, creative_id), toJSONString('')), ',"creative_id":', toJSONString(creative_id), ',') AS text, impressions, conversions, referrals, spent
FROM (SELECT day, campaign_id, device, creative_id, sum(r.impressions) AS impressions, sum(r.conversions) AS conversions, sum(r.referrals) AS referrals, sum(r.spent) AS spent FROM (SELECT account_id, day, campaign_id, device, creative_id, toInt128(t.impressions) AS impressions, toInt128(t.conversions) AS conversions, toInt128(t.referrals) AS referrals, t.spent AS spent FROM campaigns_device_creative_date AS t WHERE account_id = {account:String} AND day BETWEEN {first:Date} AND {last:Date}
UNION ALL
SELECT account_id, day, campaign_id, device, creative_id, -toInt128(t.impressions) AS impressions, -toInt128(t.conversions) AS conversions, -toInt128(t.referrals) AS referrals, -t.spent AS spent FROM campaigns_closed AS t FINAL WHERE account_id = {account:String} AND day BETWEEN {first:Date} AND {last:Date} AND revision IN {revisions:Array(String)}) AS r WHERE account_id = {account:String} AND day BETWEEN {first:Date} AND {last:Date} AND device IN {filter_device:Array(String)} GROUP BY day, campaign_id, device, creative_id HAVING impressions != 0 OR conversions != 0 OR referrals != 0 OR spent != 0)
ORDER BY day, campaign_id, device, creative_id
LIMIT {limit:UInt32})
UNION ALL
SELECT '' AS text, impressions, conversions, referrals, spent
FROM (SELECT sum(t.impressions) AS impressions, sum(t.conversions) AS conversions, sum(t.referrals) AS referrals, sum(t.spent) AS spent FROM (SELECT sum(r.impressions) AS impressions, sum(r.conversions) AS conversions, sum(r.referrals) AS referrals, sum(r.spent) AS spent FROM (SELECT account_id, day, campaign_id, device, creative_id, toInt128(t.impressions) AS impressions, toInt128(t.conversions) AS conversions, toInt128(t.referrals) AS referrals, t.spent AS spent FROM campaigns_device_creative_date AS t WHERE account_id = {account:String} AND day BETWEEN {first:Date} AND {last:Date}
UNION ALL
SELECT account_id, day, campaign_id, device, creative_id, -toInt128(t.impressions) AS impressions, -toInt128(t.conversions) AS conversions, -toInt128(t.referrals) AS referrals, -t.spent AS spent FROM campaigns_closed AS t FINAL WHERE account_id = {account:String} AND day BETWEEN {first:Date} AND {last:Date} AND revision IN {revisions:Array(String)}) AS r WHERE account_id = {account:String} AND day BETWEEN {first:Date} AND {last:Date} AND device IN {filter_device:Array(String)}) AS t GROUP BY materialize(0) WITH TOTALS HAVING 0)
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
--   additional_table_filters = {'campaigns_device_creative_date':'account_id = unhex(\'6f27686172652022605c207b6163636f756e743a537472696e677d\')','campaigns_date':'account_id = unhex(\'6f27686172652022605c207b6163636f756e743a537472696e677d\')','confirmations':'account_id = unhex(\'6f27686172652022605c207b6163636f756e743a537472696e677d\')','campaigns_closed':'account_id = unhex(\'6f27686172652022605c207b6163636f756e743a537472696e677d\')','closes':'account_id = unhex(\'6f27686172652022605c207b6163636f756e743a537472696e677d\')'}
--   optimize_move_to_prewhere = 0
--   optimize_use_projections = 0
--   output_format_json_quote_64bit_integers = 0
--   output_format_json_quote_decimals = 0
--   output_format_json_escape_forward_slashes = 0
--   output_format_parallel_formatting = 0
--   output_format_decimal_trailing_zeros = 0
--   format_template_resultset_format = "rows":[${data}],"totals":${totals},"row_count":${rows_before_limit:Raw},"column_metadata":[{"id":"start_time","type":"Date"},{"id":"end_time","type":"Date"},{"id":"campaign","type":"String"},{"id":"campaign_id","type":"String"},{"id":"device","type":"String"},{"id":"creative_headline","type":"String"},{"id":"creative_id","type":"String"},{"id":"impressions","type":"Numeric"},{"id":"conversions","type":"Numeric"},{"id":"referrals","type":"Numeric"},{"id":"spent","type":"Money"}],"unconfirmed_revenue_dates":
--   format_template_row_format = {${text:Raw}"impressions":${impressions:Raw},"conversions":${conversions:Raw},"referrals":${referrals:Raw},"spent":${spent:Raw}}
--   format_template_rows_between_delimiter = ,

SELECT toString(row_count) AS row_count, toString(impressions) AS total_impressions, toString(conversions) AS total_conversions, toString(referrals) AS total_referrals, toString(spent) AS total_spent
FROM (SELECT count() AS row_count, sum(r.impressions) AS impressions, sum(r.conversions) AS conversions, sum(r.referrals) AS referrals, sum(r.spent) AS spent
FROM (SELECT day, campaign_id, device, creative_id, sum(r.impressions) AS impressions, sum(r.conversions) AS conversions, sum(r.referrals) AS referrals, sum(r.spent) AS spent FROM (SELECT account_id, day, campaign_id, device, creative_id, toInt128(t.impressions) AS impressions, toInt128(t.conversions) AS conversions, toInt128(t.referrals) AS referrals, t.spent AS spent FROM campaigns_device_creative_date AS t WHERE account_id = {account:String} AND day BETWEEN {first:Date} AND {last:Date}
UNION ALL
SELECT account_id, day, campaign_id, device, creative_id, -toInt128(t.impressions) AS impressions, -toInt128(t.conversions) AS conversions, -toInt128(t.referrals) AS referrals, -t.spent AS spent FROM campaigns_closed AS t FINAL WHERE account_id = {account:String} AND day BETWEEN {first:Date} AND {last:Date} AND revision IN {revisions:Array(String)}) AS r WHERE account_id = {account:String} AND day BETWEEN {first:Date} AND {last:Date} AND device IN {filter_device:Array(String)} GROUP BY day, campaign_id, device, creative_id HAVING impressions != 0 OR conversions != 0 OR referrals != 0 OR spent != 0) AS r);
-- parameters
--   account = o'hare "`\ {account:String}
--   first = 2026-03-01
--   last = 2026-03-31
--   revisions = aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa
--   filter_device = mobile
-- settings
--   additional_table_filters = {'campaigns_device_creative_date':'account_id = unhex(\'6f27686172652022605c207b6163636f756e743a537472696e677d\')','campaigns_date':'account_id = unhex(\'6f27686172652022605c207b6163636f756e743a537472696e677d\')','confirmations':'account_id = unhex(\'6f27686172652022605c207b6163636f756e743a537472696e677d\')','campaigns_closed':'account_id = unhex(\'6f27686172652022605c207b6163636f756e743a537472696e677d\')','closes':'account_id = unhex(\'6f27686172652022605c207b6163636f756e743a537472696e677d\')'}
--   optimize_move_to_prewhere = 0
--   optimize_use_projections = 0

(SELECT concat('"start_time":', toJSONString(day), ',"end_time":', toJSONString(day), ',"campaign":', dictGetOrDefault('campaign_names', 'name_json', ({account:String}, campaign_id), toJSONString(campaign_id)), ',"campaign_id":', toJSONString(campaign_id), ',"device":', toJSONString(device), ',"creative_headline":', dictGetOrDefault('creative_headlines', 'headline_json', ({account:String}, creative_id), toJSONString('')), ',"creative_id":', toJSONString(creative_id), ',"changed_at":', toJSONString(changed_at), ',"change":', toJSONString(change), ',"load":', toJSONString(load), ',"reason":', toJSONString(reason), ',') AS text, impressions, conversions, referrals, spent
FROM (SELECT * FROM (SELECT day, campaign_id, device, creative_id, changed_at, change, load, reason, sum(r.impressions) AS impressions, sum(r.conversions) AS conversions, sum(r.referrals) AS referrals, sum(r.spent) AS spent FROM (SELECT account_id, day, campaign_id, device, creative_id, '' AS changed_at, 'unknown' AS change, '' AS load, '' AS reason, toInt128(t.impressions) AS impressions, toInt128(t.conversions) AS conversions, toInt128(t.referrals) AS referrals, t.spent AS spent FROM campaigns_device_creative_date AS t WHERE account_id = {account:String} AND day BETWEEN {first:Date} AND {last:Date}
UNION ALL
SELECT account_id, day, campaign_id, device, creative_id, '' AS changed_at, 'unknown' AS change, '' AS load, '' AS reason, -toInt128(t.impressions) AS impressions, -toInt128(t.conversions) AS conversions, -toInt128(t.referrals) AS referrals, -t.spent AS spent FROM campaigns_closed AS t FINAL WHERE account_id = {account:String} AND day BETWEEN {first:Date} AND {last:Date} AND revision IN {revisions:Array(String)}
UNION ALL
SELECT account_id, day, campaign_id, device, creative_id, if(is_told, g.changed_at, '') AS changed_at, if(is_told, g.change, 'unknown') AS change, if(is_told, g.load, '') AS load, if(is_told, g.reason, '') AS reason, if(is_told, g.impressions, -g.impressions) AS impressions, if(is_told, g.conversions, -g.conversions) AS conversions, if(is_told, g.referrals, -g.referrals) AS referrals, if(is_told, g.spent, -g.spent) AS spent FROM (
SELECT any(n.account_id) AS account_id, day, campaign_id, device, creative_id, replaceOne(toString(max(n.at)), ' ', 'T') || 'Z' AS changed_at, if(n.chunk = '', 'by_hand', 'loaded') AS change, c.load AS load, reason,
sum(n.impressions) AS impressions, sum(n.conversions) AS conversions, sum(n.referrals) AS referrals, sum(n.spent) AS spent FROM (
SELECT any(e.advertiser_id) AS account_id, day, campaign_id, device, creative_id, toString(e.chunk) AS chunk, max(e.loaded_at) AS at, toString(e.reason) AS reason, toInt128(sum(e.impressions)) AS impressions, toInt128(sum(e.conversions)) AS conversions, toInt128(sum(e.referrals)) AS referrals, sum(e.spend) AS spent FROM events AS e PREWHERE advertiser_id = {account:String} AND day BETWEEN {first:Date} AND {last:Date} AND day GLOBAL IN (SELECT day FROM campaigns_changes AS d WHERE account_id = {account:String} AND day BETWEEN {first:Date} AND {last:Date} AND d.changed_at > fromUnixTimestamp64Micro({closed_at:Map(UInt32, Int64)}[toYYYYMM(day)], 'UTC') - INTERVAL 1 MINUTE UNION ALL SELECT day FROM campaigns_date AS a WHERE account_id = {account:String} AND day BETWEEN {first:Date} AND {last:Date} AND a.changed_at > fromUnixTimestamp64Micro({closed_at:Map(UInt32, Int64)}[toYYYYMM(day)], 'UTC') - INTERVAL 1 MINUTE) AND loaded_at > fromUnixTimestamp64Micro({closed_at:Map(UInt32, Int64)}[toYYYYMM(day)], 'UTC') AND chunk != 'folded' GROUP BY day, campaign_id, device, creative_id, chunk, reason) AS n
LEFT JOIN (SELECT chunk, max(tuple(toUInt64(c.loaded_at) > 0, c.sent_at, c.load_id)).3 AS load FROM load_chunks AS c WHERE chunk GLOBAL IN (SELECT toString(e.chunk) FROM events AS e PREWHERE advertiser_id = {account:String} AND day BETWEEN {first:Date} AND {last:Date} AND day GLOBAL IN (SELECT day FROM campaigns_changes AS d WHERE account_id = {account:String} AND day BETWEEN {first:Date} AND {last:Date} AND d.changed_at > fromUnixTimestamp64Micro({closed_at:Map(UInt32, Int64)}[toYYYYMM(day)], 'UTC') - INTERVAL 1 MINUTE UNION ALL SELECT day FROM campaigns_date AS a WHERE account_id = {account:String} AND day BETWEEN {first:Date} AND {last:Date} AND a.changed_at > fromUnixTimestamp64Micro({closed_at:Map(UInt32, Int64)}[toYYYYMM(day)], 'UTC') - INTERVAL 1 MINUTE) AND loaded_at > fromUnixTimestamp64Micro({closed_at:Map(UInt32, Int64)}[toYYYYMM(day)], 'UTC') AND chunk != 'folded') GROUP BY chunk) AS c ON c.chunk = n.chunk
GROUP BY day, campaign_id, device, creative_id, change, load, reason
UNION ALL
SELECT account_id, day, campaign_id, device, creative_id, changed_at, change, load, reason, impressions, conversions, referrals, spent FROM (
SELECT any(e.advertiser_id) AS account_id, day, campaign_id, device, creative_id, replaceOne(toString(e.left_at), ' ', 'T') || 'Z' AS changed_at, if(e.replaced, 'replaced', 'taken_back') AS change, toString(e.load_id) AS load, toString(e.reason) AS reason, -toInt128(sum(e.impressions)) AS impressions, -toInt128(sum(e.conversions)) AS conversions, -toInt128(sum(e.referrals)) AS referrals, -sum(e.spend) AS spent FROM past_events AS e PREWHERE advertiser_id = {account:String} AND day BETWEEN {first:Date} AND {last:Date} AND day GLOBAL IN (SELECT day FROM campaigns_changes AS d WHERE account_id = {account:String} AND day BETWEEN {first:Date} AND {last:Date} AND d.changed_at > fromUnixTimestamp64Micro({closed_at:Map(UInt32, Int64)}[toYYYYMM(day)], 'UTC') - INTERVAL 1 MINUTE UNION ALL SELECT day FROM campaigns_date AS a WHERE account_id = {account:String} AND day BETWEEN {first:Date} AND {last:Date} AND a.changed_at > fromUnixTimestamp64Micro({closed_at:Map(UInt32, Int64)}[toYYYYMM(day)], 'UTC') - INTERVAL 1 MINUTE) AND came_by <= fromUnixTimestamp64Micro({closed_at:Map(UInt32, Int64)}[toYYYYMM(day)], 'UTC') AND left_at > fromUnixTimestamp64Micro({closed_at:Map(UInt32, Int64)}[toYYYYMM(day)], 'UTC')
WHERE (toYYYYMM(day), left_at) GLOBAL IN (SELECT month, began_at FROM rewrites AS w FINAL WHERE toUInt64(w.ended_at) > 0 AND NOT w.lost)
GROUP BY day, campaign_id, device, creative_id, changed_at, change, load, reason)
) AS g ARRAY JOIN [true, false] AS is_told) AS r WHERE account_id = {account:String} AND day BETWEEN {first:Date} AND {last:Date} AND device IN {filter_device:Array(String)} GROUP BY day, campaign_id, device, creative_id, changed_at, change, load, reason HAVING impressions != 0 OR conversions != 0 OR referrals != 0 OR spent != 0) AS g QUALIFY sum(g.impressions) OVER (PARTITION BY day, campaign_id, device, creative_id) != 0 OR sum(g.conversions) OVER (PARTITION BY day, campaign_id, device, creative_id) != 0 OR sum(g.referrals) OVER (PARTITION BY day, campaign_id, device, creative_id) != 0 OR sum(g.spent) OVER (PARTITION BY day, campaign_id, device, creative_id) != 0)
ORDER BY day, campaign_id, device, creative_id, changed_at, change, load, reason
LIMIT {limit:UInt32})
UNION ALL
SELECT '' AS text, impressions, conversions, referrals, spent
FROM (SELECT sum(t.impressions) AS impressions, sum(t.conversions) AS conversions, sum(t.referrals) AS referrals, sum(t.spent) AS spent FROM (SELECT sum(r.impressions) AS impressions, sum(r.conversions) AS conversions, sum(r.referrals) AS referrals, sum(r.spent) AS spent FROM (SELECT account_id, day, campaign_id, device, creative_id, toInt128(t.impressions) AS impressions, toInt128(t.conversions) AS conversions, toInt128(t.referrals) AS referrals, t.spent AS spent FROM campaigns_device_creative_date AS t WHERE account_id = {account:String} AND day BETWEEN {first:Date} AND {last:Date}
UNION ALL
SELECT account_id, day, campaign_id, device, creative_id, -toInt128(t.impressions) AS impressions, -toInt128(t.conversions) AS conversions, -toInt128(t.referrals) AS referrals, -t.spent AS spent FROM campaigns_closed AS t FINAL WHERE account_id = {account:String} AND day BETWEEN {first:Date} AND {last:Date} AND revision IN {revisions:Array(String)}) AS r WHERE account_id = {account:String} AND day BETWEEN {first:Date} AND {last:Date} AND device IN {filter_device:Array(String)}) AS t GROUP BY materialize(0) WITH TOTALS HAVING 0)
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
--   additional_table_filters = {'campaigns_device_creative_date':'account_id = unhex(\'6f27686172652022605c207b6163636f756e743a537472696e677d\')','campaigns_date':'account_id = unhex(\'6f27686172652022605c207b6163636f756e743a537472696e677d\')','confirmations':'account_id = unhex(\'6f27686172652022605c207b6163636f756e743a537472696e677d\')','campaigns_closed':'account_id = unhex(\'6f27686172652022605c207b6163636f756e743a537472696e677d\')','closes':'account_id = unhex(\'6f27686172652022605c207b6163636f756e743a537472696e677d\')','events':'advertiser_id = unhex(\'6f27686172652022605c207b6163636f756e743a537472696e677d\')','past_events':'advertiser_id = unhex(\'6f27686172652022605c207b6163636f756e743a537472696e677d\')','campaigns_changes':'account_id = unhex(\'6f27686172652022605c207b6163636f756e743a537472696e677d\')'}
--   optimize_move_to_prewhere = 0
--   optimize_use_projections = 0
--   output_format_json_quote_64bit_integers = 0
--   output_format_json_quote_decimals = 0
--   output_format_json_escape_forward_slashes = 0
--   output_format_parallel_formatting = 0
--   output_format_decimal_trailing_zeros = 0
--   format_template_resultset_format = "rows":[${data}],"totals":${totals},"row_count":${rows_before_limit:Raw},"column_metadata":[{"id":"start_time","type":"Date"},{"id":"end_time","type":"Date"},{"id":"campaign","type":"String"},{"id":"campaign_id","type":"String"},{"id":"device","type":"String"},{"id":"creative_headline","type":"String"},{"id":"creative_id","type":"String"},{"id":"changed_at","type":"String"},{"id":"change","type":"String"},{"id":"load","type":"String"},{"id":"reason","type":"String"},{"id":"impressions","type":"Numeric"},{"id":"conversions","type":"Numeric"},{"id":"referrals","type":"Numeric"},{"id":"spent","type":"Money"}],"unconfirmed_revenue_dates":
--   format_template_row_format = {${text:Raw}"impressions":${impressions:Raw},"conversions":${conversions:Raw},"referrals":${referrals:Raw},"spent":${spent:Raw}}
--   format_template_rows_between_delimiter = ,
