-- POST /v1/campaigns/breakdowns/creative
-- {"compare_to":"previous_year","metrics":["spent"],"order_by":[{"field":"cpc_change","direction":"desc"}]}

SELECT concat('"campaign":', dictGetOrDefault('campaign_names', 'name_json', ({account:String}, campaign_id), toJSONString(campaign_id)), ',"creative_headline":', dictGetOrDefault('creative_headlines', 'headline_json', ({account:String}, creative_id), toJSONString('')), ',"creative_id":', toJSONString(creative_id)) AS text, spent, spent_compared, spent - spent_compared AS spent_change
FROM (SELECT campaign_id, creative_id, sum(s.referrals) AS referrals, sum(s.spent) AS spent, sum(s.referrals_compared) AS referrals_compared, sum(s.spent_compared) AS spent_compared FROM (SELECT campaign_id, creative_id, sum(r.referrals) AS referrals, sum(r.spent) AS spent, 0 AS referrals_compared, 0 AS spent_compared FROM campaigns_creative_date AS r WHERE account_id = {account:String} AND day BETWEEN {first:Date} AND {last:Date} GROUP BY campaign_id, creative_id
UNION ALL
SELECT campaign_id, creative_id, 0 AS referrals, 0 AS spent, sum(r.referrals) AS referrals_compared, sum(r.spent) AS spent_compared FROM campaigns_creative_date AS r WHERE account_id = {account:String} AND day BETWEEN {compared_first:Date} AND {compared_last:Date} GROUP BY campaign_id, creative_id) AS s GROUP BY campaign_id, creative_id)
ORDER BY if(referrals = 0, toDecimal128(0, 7), round(toDecimal128(spent, 7) / greatest(referrals, 1), 6)) - if(referrals_compared = 0, toDecimal128(0, 7), round(toDecimal128(spent_compared, 7) / greatest(referrals_compared, 1), 6)) DESC, campaign_id, creative_id
FORMAT Template;
-- parameters
--   account = o'hare "`\ {account:String}
--   first = 2026-03-01
--   last = 2026-03-31
--   compared_first = 2025-03-01
--   compared_last = 2025-03-31
-- settings
--   additional_table_filters = {'campaigns_creative_date':'account_id = unhex(\'6f27686172652022605c207b6163636f756e743a537472696e677d\')','campaigns_date':'account_id = unhex(\'6f27686172652022605c207b6163636f756e743a537472696e677d\')','confirmations':'account_id = unhex(\'6f27686172652022605c207b6163636f756e743a537472696e677d\')'}
--   optimize_move_to_prewhere = 0
--   optimize_use_projections = 0
--   output_format_json_quote_64bit_integers = 0
--   output_format_json_quote_decimals = 0
--   output_format_json_escape_forward_slashes = 0
--   output_format_parallel_formatting = 0
--   output_format_decimal_trailing_zeros = 0
--   format_template_resultset_format = {"result":{"last_update_time":"2026-04-01 00:00:00 UTC","rows":[${data}],"compare_to":{"start_time":"2025-03-01","end_time":"2025-03-31"},"column_metadata":[{"id":"start_time","type":"Date"},{"id":"end_time","type":"Date"},{"id":"campaign","type":"String"},{"id":"creative_headline","type":"String"},{"id":"creative_id","type":"String"},{"id":"spent","type":"Money"},{"id":"spent_compared","type":"Money"},{"id":"spent_change","type":"Money"}],"unconfirmed_revenue_dates":[]}}
--   format_template_row_format = {"start_time":"2026-03-01","end_time":"2026-03-31",${text:Raw},"spent":${spent:Raw},"spent_compared":${spent_compared:Raw},"spent_change":${spent_change:Raw}}
--   format_template_rows_between_delimiter = ,

SELECT toString(row_count) AS row_count, toString(spent) AS total_spent, toString(spent_compared) AS total_spent_compared, toString(spent - spent_compared) AS total_spent_change
FROM (SELECT count() AS row_count, sum(r.referrals) AS referrals, sum(r.spent) AS spent, sum(r.referrals_compared) AS referrals_compared, sum(r.spent_compared) AS spent_compared
FROM (SELECT campaign_id, creative_id, sum(s.referrals) AS referrals, sum(s.spent) AS spent, sum(s.referrals_compared) AS referrals_compared, sum(s.spent_compared) AS spent_compared FROM (SELECT campaign_id, creative_id, sum(r.referrals) AS referrals, sum(r.spent) AS spent, 0 AS referrals_compared, 0 AS spent_compared FROM campaigns_creative_date AS r WHERE account_id = {account:String} AND day BETWEEN {first:Date} AND {last:Date} GROUP BY campaign_id, creative_id
UNION ALL
SELECT campaign_id, creative_id, 0 AS referrals, 0 AS spent, sum(r.referrals) AS referrals_compared, sum(r.spent) AS spent_compared FROM campaigns_creative_date AS r WHERE account_id = {account:String} AND day BETWEEN {compared_first:Date} AND {compared_last:Date} GROUP BY campaign_id, creative_id) AS s GROUP BY campaign_id, creative_id) AS r);
-- parameters
--   account = o'hare "`\ {account:String}
--   first = 2026-03-01
--   last = 2026-03-31
--   compared_first = 2025-03-01
--   compared_last = 2025-03-31
-- settings
--   additional_table_filters = {'campaigns_creative_date':'account_id = unhex(\'6f27686172652022605c207b6163636f756e743a537472696e677d\')','campaigns_date':'account_id = unhex(\'6f27686172652022605c207b6163636f756e743a537472696e677d\')','confirmations':'account_id = unhex(\'6f27686172652022605c207b6163636f756e743a537472696e677d\')'}
--   optimize_move_to_prewhere = 0
--   optimize_use_projections = 0
