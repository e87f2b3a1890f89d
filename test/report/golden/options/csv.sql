-- POST /v1/campaigns/breakdowns/creative
-- {"limit":3}

SELECT {start:String} AS start_time, {end:String} AS end_time, dictGetOrDefault('campaign_names', 'name', ({account:String}, campaign_id), campaign_id) AS campaign, dictGetOrDefault('creative_headlines', 'headline', ({account:String}, creative_id), '') AS creative_headline, creative_id, if(conversions = 0, toDecimal128(0, 7), round(toDecimal128(spent, 7) / greatest(conversions, 1), 6)) AS cpa, if(referrals = 0, toDecimal128(0, 7), round(toDecimal128(spent, 7) / greatest(referrals, 1), 6)) AS cpc, if(impressions = 0, toDecimal128(0, 7), round(toDecimal128(1000 * spent, 7) / greatest(impressions, 1), 6)) AS cpm, impressions, conversions, referrals, spent
FROM (SELECT campaign_id, creative_id, sum(r.impressions) AS impressions, sum(r.conversions) AS conversions, sum(r.referrals) AS referrals, sum(r.spent) AS spent FROM campaigns_creative_date AS r WHERE account_id = {account:String} AND day BETWEEN {first:Date} AND {last:Date} GROUP BY campaign_id, creative_id)
ORDER BY campaign_id, creative_id
LIMIT {limit:UInt32}
FORMAT CSVWithNames;
-- parameters
--   account = o'hare "`\ {account:String}
--   first = 2026-03-01
--   last = 2026-03-31
--   start = 2026-03-01
--   end = 2026-03-31
--   limit = 3
-- settings
--   optimize_read_in_order = 0
--   exact_rows_before_limit = 1
--   additional_table_filters = {'campaigns_creative_date':'account_id = unhex(\'6f27686172652022605c207b6163636f756e743a537472696e677d\')','campaigns_date':'account_id = unhex(\'6f27686172652022605c207b6163636f756e743a537472696e677d\')','confirmations':'account_id = unhex(\'6f27686172652022605c207b6163636f756e743a537472696e677d\')'}
--   optimize_move_to_prewhere = 0
--   optimize_use_projections = 0
--   output_format_decimal_trailing_zeros = 0
