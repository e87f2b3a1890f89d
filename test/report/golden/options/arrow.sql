-- POST /v1/ad_units/breakdowns/site_date
-- {"time_grain":"month"}

SELECT toDate32(greatest(period, {first:Date})) AS start_time, toDate32(least(addMonths(toDate32(period), 1) - 1, {until:Date32})) AS end_time, dictGetOrDefault('ad_unit_names', 'name', ({account:String}, ad_unit_id), ad_unit_id) AS ad_unit, dictGetOrDefault('site_names', 'name', ({account:String}, site_id), site_id) AS site, estimated_revenue, accurateCast(ad_requests, 'Int64') AS ad_requests, accurateCast(impressions, 'Int64') AS impressions, accurateCast(referrals, 'Int64') AS referrals, CAST(if(impressions = 0, toDecimal128(0, 7), round(toDecimal128(1000 * estimated_revenue, 7) / greatest(impressions, 1), 6)), 'Decimal(38, 6)') AS cpm, CAST(if(ad_requests = 0, toDecimal128(0, 7), round(toDecimal128(impressions, 7) / greatest(ad_requests, 1), 6)), 'Decimal(38, 6)') AS fill_rate, CAST(if(impressions = 0, toDecimal128(0, 7), round(toDecimal128(referrals, 7) / greatest(impressions, 1), 6)), 'Decimal(38, 6)') AS rtr
FROM (SELECT toStartOfMonth(day) AS period, ad_unit_id, site_id, sum(r.estimated_revenue) AS estimated_revenue, sum(r.ad_requests) AS ad_requests, sum(r.impressions) AS impressions, sum(r.referrals) AS referrals FROM ad_units_site_date AS r WHERE account_id = {account:String} AND day BETWEEN {first:Date} AND {last:Date} GROUP BY period, ad_unit_id, site_id)
ORDER BY period, ad_unit_id, site_id
FORMAT ArrowStream;
-- parameters
--   account = o'hare "`\ {account:String}
--   first = 2026-03-01
--   last = 2026-03-31
--   until = 2026-03-31
-- settings
--   additional_table_filters = {'ad_units_site_date':'account_id = unhex(\'6f27686172652022605c207b6163636f756e743a537472696e677d\')','ad_units_date':'account_id = unhex(\'6f27686172652022605c207b6163636f756e743a537472696e677d\')','confirmations':'account_id = unhex(\'6f27686172652022605c207b6163636f756e743a537472696e677d\')'}
--   optimize_move_to_prewhere = 0
--   optimize_use_projections = 0
--   output_format_arrow_string_as_string = 1
--   output_format_arrow_compression_method = none
