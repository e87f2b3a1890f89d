-- POST /v1/ad_units/breakdowns/site_date
-- {"compare_to":"previous_month","metrics":["rtr","impressions"]}

SELECT toDate32(period) AS start_time, toDate32(period) AS end_time, dictGetOrDefault('ad_unit_names', 'name', ({account:String}, ad_unit_id), ad_unit_id) AS ad_unit, dictGetOrDefault('site_names', 'name', ({account:String}, site_id), site_id) AS site, CAST(if(impressions = 0, toDecimal128(0, 7), round(toDecimal128(referrals, 7) / greatest(impressions, 1), 6)), 'Decimal(38, 6)') AS rtr, CAST(if(impressions_compared = 0, toDecimal128(0, 7), round(toDecimal128(referrals_compared, 7) / greatest(impressions_compared, 1), 6)), 'Decimal(38, 6)') AS rtr_compared, CAST(if(impressions = 0, toDecimal128(0, 7), round(toDecimal128(referrals, 7) / greatest(impressions, 1), 6)) - if(impressions_compared = 0, toDecimal128(0, 7), round(toDecimal128(referrals_compared, 7) / greatest(impressions_compared, 1), 6)), 'Decimal(38, 6)') AS rtr_change, accurateCast(impressions, 'Int64') AS impressions, accurateCast(impressions_compared, 'Int64') AS impressions_compared, accurateCast(impressions - impressions_compared, 'Int64') AS impressions_change
FROM (SELECT period, ad_unit_id, site_id, sum(s.impressions) AS impressions, sum(s.referrals) AS referrals, sum(s.impressions_compared) AS impressions_compared, sum(s.referrals_compared) AS referrals_compared FROM (SELECT day AS period, ad_unit_id, site_id, sum(r.impressions) AS impressions, sum(r.referrals) AS referrals, 0 AS impressions_compared, 0 AS referrals_compared FROM ad_units_site_date AS r WHERE account_id = {account:String} AND day BETWEEN {first:Date} AND {last:Date} GROUP BY period, ad_unit_id, site_id
UNION ALL
SELECT day + {later:Int32} AS period, ad_unit_id, site_id, 0 AS impressions, 0 AS referrals, sum(r.impressions) AS impressions_compared, sum(r.referrals) AS referrals_compared FROM ad_units_site_date AS r WHERE account_id = {account:String} AND day BETWEEN {compared_first:Date} AND {compared_last:Date} GROUP BY period, ad_unit_id, site_id) AS s GROUP BY period, ad_unit_id, site_id)
ORDER BY period, ad_unit_id, site_id
FORMAT Parquet;
-- parameters
--   account = o'hare "`\ {account:String}
--   first = 2026-03-01
--   last = 2026-03-31
--   compared_first = 2026-02-01
--   compared_last = 2026-02-28
--   later = 28
-- settings
--   additional_table_filters = {'ad_units_site_date':'account_id = unhex(\'6f27686172652022605c207b6163636f756e743a537472696e677d\')','ad_units_date':'account_id = unhex(\'6f27686172652022605c207b6163636f756e743a537472696e677d\')','confirmations':'account_id = unhex(\'6f27686172652022605c207b6163636f756e743a537472696e677d\')'}
--   optimize_move_to_prewhere = 0
--   optimize_use_projections = 0
--   output_format_parquet_string_as_string = 1
--   output_format_parquet_compression_method = zstd
