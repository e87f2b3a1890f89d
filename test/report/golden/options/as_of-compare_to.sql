-- POST /v1/campaigns/breakdowns/creative
-- {"as_of":"closed","compare_to":"previous_month","metrics":["spent"],"totals":true}

(SELECT concat('"start_time":', toJSONString({start:String}), ',"end_time":', toJSONString({end:String}), ',"campaign":', toJSONString(campaign), ',"creative_headline":', toJSONString(creative_headline), ',"creative_id":', toJSONString(creative_id), ',') AS text, spent, spent_compared, spent - spent_compared AS spent_change
FROM (SELECT campaign_id, creative_id, tupleElement(max(s.campaign), 2) AS campaign, tupleElement(max(s.creative_headline), 2) AS creative_headline, sum(s.spent) AS spent, sum(s.spent_compared) AS spent_compared FROM (SELECT campaign_id, creative_id, max((r.day, r.campaign)) AS campaign, max((r.day, r.creative_headline)) AS creative_headline, sum(r.spent) AS spent, 0 AS spent_compared FROM campaigns_closed AS r FINAL WHERE account_id = {account:String} AND day BETWEEN {first:Date} AND {last:Date} AND revision IN {revisions:Array(String)} GROUP BY campaign_id, creative_id
UNION ALL
SELECT campaign_id, creative_id, max((r.day, r.campaign)) AS campaign, max((r.day, r.creative_headline)) AS creative_headline, 0 AS spent, sum(r.spent) AS spent_compared FROM campaigns_closed AS r FINAL WHERE account_id = {account:String} AND day BETWEEN {compared_first:Date} AND {compared_last:Date} AND revision IN {revisions:Array(String)} GROUP BY campaign_id, creative_id) AS s GROUP BY campaign_id, creative_id)
ORDER BY campaign_id, creative_id)
UNION ALL
SELECT '' AS text, spent, spent_compared, spent - spent_compared AS spent_change
FROM (SELECT sum(t.spent) AS spent, sum(t.spent_compared) AS spent_compared FROM (SELECT sum(s.spent) AS spent, sum(s.spent_compared) AS spent_compared FROM (SELECT sum(r.spent) AS spent, 0 AS spent_compared FROM campaigns_closed AS r FINAL WHERE account_id = {account:String} AND day BETWEEN {first:Date} AND {last:Date} AND revision IN {revisions:Array(String)}
UNION ALL
SELECT 0 AS spent, sum(r.spent) AS spent_compared FROM campaigns_closed AS r FINAL WHERE account_id = {account:String} AND day BETWEEN {compared_first:Date} AND {compared_last:Date} AND revision IN {revisions:Array(String)}) AS s) AS t GROUP BY materialize(0) WITH TOTALS HAVING 0)
FORMAT Template;
-- parameters
--   account = o'hare "`\ {account:String}
--   first = 2026-03-01
--   last = 2026-03-31
--   compared_first = 2026-02-01
--   compared_last = 2026-02-28
--   revisions = aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa,bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb
--   start = 2026-03-01
--   end = 2026-03-31
-- settings
--   totals_mode = before_having
--   additional_table_filters = {'campaigns_closed':'account_id = unhex(\'6f27686172652022605c207b6163636f756e743a537472696e677d\')','closes':'account_id = unhex(\'6f27686172652022605c207b6163636f756e743a537472696e677d\')'}
--   optimize_move_to_prewhere = 0
--   optimize_use_projections = 0
--   output_format_json_quote_64bit_integers = 0
--   output_format_json_quote_decimals = 0
--   output_format_json_escape_forward_slashes = 0
--   output_format_parallel_formatting = 0
--   output_format_decimal_trailing_zeros = 0
--   format_template_resultset_format = {"result":{"last_update_time":"2026-04-01 00:00:00 UTC","rows":[${data}],"totals":${totals},"compare_to":{"start_time":"2026-02-01","end_time":"2026-02-28"},"column_metadata":[{"id":"start_time","type":"Date"},{"id":"end_time","type":"Date"},{"id":"campaign","type":"String"},{"id":"creative_headline","type":"String"},{"id":"creative_id","type":"String"},{"id":"spent","type":"Money"},{"id":"spent_compared","type":"Money"},{"id":"spent_change","type":"Money"}],"unconfirmed_revenue_dates":[]}}
--   format_template_row_format = {${text:Raw}"spent":${spent:Raw},"spent_compared":${spent_compared:Raw},"spent_change":${spent_change:Raw}}
--   format_template_rows_between_delimiter = ,

SELECT toString(row_count) AS row_count, toString(spent) AS total_spent, toString(spent_compared) AS total_spent_compared, toString(spent - spent_compared) AS total_spent_change
FROM (SELECT count() AS row_count, sum(r.spent) AS spent, sum(r.spent_compared) AS spent_compared
FROM (SELECT campaign_id, creative_id, tupleElement(max(s.campaign), 2) AS campaign, tupleElement(max(s.creative_headline), 2) AS creative_headline, sum(s.spent) AS spent, sum(s.spent_compared) AS spent_compared FROM (SELECT campaign_id, creative_id, max((r.day, r.campaign)) AS campaign, max((r.day, r.creative_headline)) AS creative_headline, sum(r.spent) AS spent, 0 AS spent_compared FROM campaigns_closed AS r FINAL WHERE account_id = {account:String} AND day BETWEEN {first:Date} AND {last:Date} AND revision IN {revisions:Array(String)} GROUP BY campaign_id, creative_id
UNION ALL
SELECT campaign_id, creative_id, max((r.day, r.campaign)) AS campaign, max((r.day, r.creative_headline)) AS creative_headline, 0 AS spent, sum(r.spent) AS spent_compared FROM campaigns_closed AS r FINAL WHERE account_id = {account:String} AND day BETWEEN {compared_first:Date} AND {compared_last:Date} AND revision IN {revisions:Array(String)} GROUP BY campaign_id, creative_id) AS s GROUP BY campaign_id, creative_id) AS r);
-- parameters
--   account = o'hare "`\ {account:String}
--   first = 2026-03-01
--   last = 2026-03-31
--   compared_first = 2026-02-01
--   compared_last = 2026-02-28
--   revisions = aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa,bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb
-- settings
--   additional_table_filters = {'campaigns_closed':'account_id = unhex(\'6f27686172652022605c207b6163636f756e743a537472696e677d\')','closes':'account_id = unhex(\'6f27686172652022605c207b6163636f756e743a537472696e677d\')'}
--   optimize_move_to_prewhere = 0
--   optimize_use_projections = 0

SELECT DISTINCT day FROM (
SELECT account_id, revision, u.1 AS family, u.2 AS day FROM closes ARRAY JOIN unconfirmed AS u)
WHERE account_id = {account:String} AND day BETWEEN {first:Date} AND {last:Date} AND revision IN {revisions:Array(String)} AND family = 'campaigns' ORDER BY day;
-- parameters
--   account = o'hare "`\ {account:String}
--   first = 2026-03-01
--   last = 2026-03-31
--   revisions = aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa,bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb
-- settings
--   max_threads = 1
--   additional_table_filters = {'campaigns_closed':'account_id = unhex(\'6f27686172652022605c207b6163636f756e743a537472696e677d\')','closes':'account_id = unhex(\'6f27686172652022605c207b6163636f756e743a537472696e677d\')'}
--   optimize_move_to_prewhere = 0
--   optimize_use_projections = 0
