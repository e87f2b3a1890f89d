-- POST /v1/ad_units/breakdowns/site_date
-- {"limit":3}

SELECT toString(day) AS start_time, toString(day) AS end_time, dictGetOrDefault('ad_unit_names', 'name', ({account:String}, ad_unit_id), ad_unit_id) AS ad_unit, dictGetOrDefault('site_names', 'name', ({account:String}, site_id), site_id) AS site, estimated_revenue, ad_requests, impressions, referrals, if(impressions = 0, toDecimal128(0, 7), round(toDecimal128(1000 * estimated_revenue, 7) / greatest(impressions, 1), 6)) AS cpm, if(ad_requests = 0, toDecimal128(0, 7), round(toDecimal128(impressions, 7) / greatest(ad_requests, 1), 6)) AS fill_rate, if(impressions = 0, toDecimal128(0, 7), round(toDecimal128(referrals, 7) / greatest(impressions, 1), 6)) AS rtr
FROM ad_units_site_date AS r FINAL PREWHERE account_id = {account:String} AND day BETWEEN {first:Date} AND {last:Date}
ORDER BY day, ad_unit_id, site_id
LIMIT {limit:UInt32}
FORMAT JSONEachRow;
-- parameters
--   account = o'hare "`\ {account:String}
--   first = 2026-03-01
--   last = 2026-03-31
--   limit = 3
-- settings
--   optimize_read_in_order = 0
--   exact_rows_before_limit = 1
--   additional_table_filters = {'ad_units_site_date':'account_id = unhex(\'6f27686172652022605c207b6163636f756e743a537472696e677d\')','ad_units_date':'account_id = unhex(\'6f27686172652022605c207b6163636f756e743a537472696e677d\')','confirmations':'account_id = unhex(\'6f27686172652022605c207b6163636f756e743a537472696e677d\')'}
--   optimize_move_to_prewhere = 0
--   optimize_use_projections = 0
--   output_format_json_quote_64bit_integers = 0
--   output_format_json_quote_decimals = 0
--   output_format_json_escape_forward_slashes = 0
--   output_format_parallel_formatting = 0
--   output_format_decimal_trailing_zeros = 0
