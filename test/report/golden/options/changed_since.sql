-- POST /v1/ad_units/breakdowns/site_date
-- {"changed_since":"2026-03-02T08:00:00.5+01:00"}

SELECT concat('"start_time":', toJSONString(day), ',"end_time":', toJSONString(day), ',"ad_unit":', dictGetOrDefault('ad_unit_names', 'name_json', ({account:String}, ad_unit_id), toJSONString(ad_unit_id)), ',"site":', dictGetOrDefault('site_names', 'name_json', ({account:String}, site_id), toJSONString(site_id))) AS text, estimated_revenue, ad_requests, impressions, referrals, if(impressions = 0, toDecimal128(0, 7), round(toDecimal128(1000 * estimated_revenue, 7) / greatest(impressions, 1), 6)) AS cpm, if(ad_requests = 0, toDecimal128(0, 7), round(toDecimal128(impressions, 7) / greatest(ad_requests, 1), 6)) AS fill_rate, if(impressions = 0, toDecimal128(0, 7), round(toDecimal128(referrals, 7) / greatest(impressions, 1), 6)) AS rtr
FROM ad_units_site_date AS r FINAL PREWHERE account_id = {account:String} AND day BETWEEN {first:Date} AND {last:Date} AND day GLOBAL IN (SELECT day FROM ad_units_changes AS d WHERE account_id = {account:String} AND day BETWEEN {first:Date} AND {last:Date} AND d.changed_at > fromUnixTimestamp64Micro({changed_since:Int64}, 'UTC') UNION ALL SELECT day FROM ad_units_date AS a WHERE account_id = {account:String} AND day BETWEEN {first:Date} AND {last:Date} AND a.changed_at > fromUnixTimestamp64Micro({changed_since:Int64}, 'UTC') UNION ALL SELECT day FROM confirmations AS c WHERE account_id = {account:String} AND day BETWEEN {first:Date} AND {last:Date} AND c.ad_units_changed_at > fromUnixTimestamp64Micro({changed_since:Int64}, 'UTC'))
ORDER BY day, ad_unit_id, site_id
FORMAT Template;
-- parameters
--   account = o'hare "`\ {account:String}
--   first = 2026-03-01
--   last = 2026-03-31
--   changed_since = 1772434800500000
-- settings
--   query_plan_execute_functions_after_sorting = 0
--   read_in_order_use_buffering = 0
--   max_block_size = 4096
--   additional_table_filters = {'ad_units_site_date':'account_id = unhex(\'6f27686172652022605c207b6163636f756e743a537472696e677d\')','ad_units_date':'account_id = unhex(\'6f27686172652022605c207b6163636f756e743a537472696e677d\')','confirmations':'account_id = unhex(\'6f27686172652022605c207b6163636f756e743a537472696e677d\')','ad_units_changes':'account_id = unhex(\'6f27686172652022605c207b6163636f756e743a537472696e677d\')'}
--   optimize_move_to_prewhere = 0
--   optimize_use_projections = 0
--   output_format_json_quote_64bit_integers = 0
--   output_format_json_quote_decimals = 0
--   output_format_json_escape_forward_slashes = 0
--   output_format_parallel_formatting = 0
--   output_format_decimal_trailing_zeros = 0
--   format_template_resultset_format = {"result":{"last_update_time":"2026-04-01 00:00:00 UTC","rows":[${data}],"column_metadata":[{"id":"start_time","type":"Date"},{"id":"end_time","type":"Date"},{"id":"ad_unit","type":"String"},{"id":"site","type":"String"},{"id":"estimated_revenue","type":"Money"},{"id":"ad_requests","type":"Numeric"},{"id":"impressions","type":"Numeric"},{"id":"referrals","type":"Numeric"},{"id":"cpm","type":"Money"},{"id":"fill_rate","type":"Numeric"},{"id":"rtr","type":"Numeric"}],"unconfirmed_revenue_dates":[]}}
--   format_template_row_format = {${text:Raw},"estimated_revenue":${estimated_revenue:Raw},"ad_requests":${ad_requests:Raw},"impressions":${impressions:Raw},"referrals":${referrals:Raw},"cpm":${cpm:Raw},"fill_rate":${fill_rate:Raw},"rtr":${rtr:Raw}}
--   format_template_rows_between_delimiter = ,

SELECT toString(row_count) AS row_count, toString(estimated_revenue) AS total_estimated_revenue, toString(ad_requests) AS total_ad_requests, toString(impressions) AS total_impressions, toString(referrals) AS total_referrals, toString(if(impressions = 0, toDecimal128(0, 7), round(toDecimal128(1000 * estimated_revenue, 7) / greatest(impressions, 1), 6))) AS total_cpm, toString(if(ad_requests = 0, toDecimal128(0, 7), round(toDecimal128(impressions, 7) / greatest(ad_requests, 1), 6))) AS total_fill_rate, toString(if(impressions = 0, toDecimal128(0, 7), round(toDecimal128(referrals, 7) / greatest(impressions, 1), 6))) AS total_rtr
FROM (SELECT count() AS row_count, sum(r.estimated_revenue) AS estimated_revenue, sum(r.ad_requests) AS ad_requests, sum(r.impressions) AS impressions, sum(r.referrals) AS referrals
FROM ad_units_site_date AS r FINAL PREWHERE account_id = {account:String} AND day BETWEEN {first:Date} AND {last:Date} AND day GLOBAL IN (SELECT day FROM ad_units_changes AS d WHERE account_id = {account:String} AND day BETWEEN {first:Date} AND {last:Date} AND d.changed_at > fromUnixTimestamp64Micro({changed_since:Int64}, 'UTC') UNION ALL SELECT day FROM ad_units_date AS a WHERE account_id = {account:String} AND day BETWEEN {first:Date} AND {last:Date} AND a.changed_at > fromUnixTimestamp64Micro({changed_since:Int64}, 'UTC') UNION ALL SELECT day FROM confirmations AS c WHERE account_id = {account:String} AND day BETWEEN {first:Date} AND {last:Date} AND c.ad_units_changed_at > fromUnixTimestamp64Micro({changed_since:Int64}, 'UTC')));
-- parameters
--   account = o'hare "`\ {account:String}
--   first = 2026-03-01
--   last = 2026-03-31
--   changed_since = 1772434800500000
-- settings
--   additional_table_filters = {'ad_units_site_date':'account_id = unhex(\'6f27686172652022605c207b6163636f756e743a537472696e677d\')','ad_units_date':'account_id = unhex(\'6f27686172652022605c207b6163636f756e743a537472696e677d\')','confirmations':'account_id = unhex(\'6f27686172652022605c207b6163636f756e743a537472696e677d\')','ad_units_changes':'account_id = unhex(\'6f27686172652022605c207b6163636f756e743a537472696e677d\')'}
--   optimize_move_to_prewhere = 0
--   optimize_use_projections = 0
