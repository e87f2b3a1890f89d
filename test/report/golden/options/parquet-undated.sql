-- POST /v1/campaigns/breakdowns/creative
-- {"metrics":["impressions","spent"],"totals":true}

SELECT toDate32(0) + {start:Int32} AS start_time, toDate32(0) + {end:Int32} AS end_time, dictGetOrDefault('campaign_names', 'name', ({account:String}, campaign_id), campaign_id) AS campaign, dictGetOrDefault('creative_headlines', 'headline', ({account:String}, creative_id), '') AS creative_headline, creative_id, accurateCast(impressions, 'Int64') AS impressions, spent
FROM (SELECT campaign_id, creative_id, sum(r.impressions) AS impressions, sum(r.spent) AS spent FROM campaigns_creative_date AS r WHERE account_id = {account:String} AND day BETWEEN {first:Date} AND {last:Date} GROUP BY campaign_id, creative_id)
ORDER BY campaign_id, creative_id
FORMAT Parquet;
-- parameters
--   account = o'hare "`\ {account:String}
--   first = 2026-03-01
--   last = 2026-03-31
--   start = 20513
--   end = 20543
-- settings
--   totals_mode = before_having
--   additional_table_filters = {'campaigns_creative_date':'account_id = unhex(\'6f27686172652022605c207b6163636f756e743a537472696e677d\')','campaigns_date':'account_id = unhex(\'6f27686172652022605c207b6163636f756e743a537472696e677d\')','confirmations':'account_id = unhex(\'6f27686172652022605c207b6163636f756e743a537472696e677d\')'}
--   optimize_move_to_prewhere = 0
--   optimize_use_projections = 0
--   output_format_parquet_string_as_string = 1
--   output_format_parquet_compression_method = zstd
