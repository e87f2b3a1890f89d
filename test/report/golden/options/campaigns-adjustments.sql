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
