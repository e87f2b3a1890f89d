-- POST /v1/campaigns/breakdowns/creative
-- {"order_by":[{"field":"start_time"},{"field":"cpc","direction":"desc"}]}

SELECT concat('"campaign":', dictGetOrDefault('campaign_names', 'name_json', ({account:String}, campaign_id), toJSONString(campaign_id)), ',"creative_headline":', dictGetOrDefault('creative_headlines', 'headline_json', ({account:String}, creative_id), toJSONString('')), ',"creative_id":', toJSONString(creative_id)) AS text, if(conversions = 0, toDecimal128(0, 7), round(toDecimal128(spent, 7) / greatest(conversions, 1), 6)) AS cpa, if(referrals = 0, toDecimal128(0, 7), round(toDecimal128(spent, 7) / greatest(referrals, 1), 6)) AS cpc, if(impressions = 0, toDecimal128(0, 7), round(toDecimal128(1000 * spent, 7) / greatest(impressions, 1), 6)) AS cpm, impressions, conversions, referrals, spent
FROM (SELECT campaign_id, creative_id, sum(r.impressions) AS impressions, sum(r.conversions) AS conversions, sum(r.referrals) AS referrals, sum(r.spent) AS spent FROM campaigns_creative_date AS r WHERE account_id = {account:String} AND day BETWEEN {first:Date} AND {last:Date} GROUP BY campaign_id, creative_id)
ORDER BY if(referrals = 0, toDecimal128(0, 7), round(toDecimal128(spent, 7) / greatest(referrals, 1), 6)) DESC, campaign_id, creative_id
FORMAT Template;
-- parameters
--   account = o'hare "`\ {account:String}
--   first = 2026-03-01
--   last = 2026-03-31
-- settings
--   additional_table_filters = {'campaigns_creative_date':'account_id = unhex(\'6f27686172652022605c207b6163636f756e743a537472696e677d\')','campaigns_date':'account_id = unhex(\'6f27686172652022605c207b6163636f756e743a537472696e677d\')','confirmations':'account_id = unhex(\'6f27686172652022605c207b6163636f756e743a537472696e677d\')'}
--   optimize_move_to_prewhere = 0
--   optimize_use_projections = 0
--   output_format_json_quote_64bit_integers = 0
--   output_format_json_quote_decimals = 0
--   output_format_json_escape_forward_slashes = 0
--   output_format_parallel_formatting = 0
--   output_format_decimal_trailing_zeros = 0
--   format_template_resultset_format = {"result":{"last_update_time":"2026-04-01 00:00:00 UTC","rows":[${data}],"column_metadata":[{"id":"start_time","type":"Date"},{"id":"end_time","type":"Date"},{"id":"campaign","type":"String"},{"id":"creative_headline","type":"String"},{"id":"creative_id","type":"String"},{"id":"cpa","type":"Money"},{"id":"cpc","type":"Money"},{"id":"cpm","type":"Money"},{"id":"impressions","type":"Numeric"},{"id":"conversions","type":"Numeric"},{"id":"referrals","type":"Numeric"},{"id":"spent","type":"Money"}],"unconfirmed_revenue_dates":[]}}
--   format_template_row_format = {"start_time":"2026-03-01","end_time":"2026-03-31",${text:Raw},"cpa":${cpa:Raw},"cpc":${cpc:Raw},"cpm":${cpm:Raw},"impressions":${impressions:Raw},"conversions":${conversions:Raw},"referrals":${referrals:Raw},"spent":${spent:Raw}}
--   format_template_rows_between_delimiter = ,

SELECT toString(row_count) AS row_count, toString(if(conversions = 0, toDecimal128(0, 7), round(toDecimal128(spent, 7) / greatest(conversions, 1), 6))) AS total_cpa, toString(if(referrals = 0, toDecimal128(0, 7), round(toDecimal128(spent, 7) / greatest(referrals, 1), 6))) AS total_cpc, toString(if(impressions = 0, toDecimal128(0, 7), round(toDecimal128(1000 * spent, 7) / greatest(impressions, 1), 6))) AS total_cpm, toString(impressions) AS total_impressions, toString(conversions) AS total_conversions, toString(referrals) AS total_referrals, toString(spent) AS total_spent
FROM (SELECT count() AS row_count, sum(r.impressions) AS impressions, sum(r.conversions) AS conversions, sum(r.referrals) AS referrals, sum(r.spent) AS spent
FROM (SELECT campaign_id, creative_id, sum(r.impressions) AS impressions, sum(r.conversions) AS conversions, sum(r.referrals) AS referrals, sum(r.spent) AS spent FROM campaigns_creative_date AS r WHERE account_id = {account:String} AND day BETWEEN {first:Date} AND {last:Date} GROUP BY campaign_id, creative_id) AS r);
-- parameters
--   account = o'hare "`\ {account:String}
--   first = 2026-03-01
--   last = 2026-03-31
-- settings
--   additional_table_filters = {'campaigns_creative_date':'account_id = unhex(\'6f27686172652022605c207b6163636f756e743a537472696e677d\')','campaigns_date':'account_id = unhex(\'6f27686172652022605c207b6163636f756e743a537472696e677d\')','confirmations':'account_id = unhex(\'6f27686172652022605c207b6163636f756e743a537472696e677d\')'}
--   optimize_move_to_prewhere = 0
--   optimize_use_projections = 0
