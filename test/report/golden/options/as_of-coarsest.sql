-- POST /v1/campaigns
-- {"as_of":"closed","metrics":["spent"]}

SELECT concat('"campaign":', toJSONString(campaign)) AS text, spent
FROM (SELECT campaign_id, tupleElement(max((r.day, r.campaign)), 2) AS campaign, sum(r.spent) AS spent FROM campaigns_closed AS r FINAL WHERE account_id = {account:String} AND day BETWEEN {first:Date} AND {last:Date} AND revision IN {revisions:Array(String)} GROUP BY campaign_id)
ORDER BY campaign_id
FORMAT Template;
-- parameters
--   account = o'hare "`\ {account:String}
--   first = 2026-03-01
--   last = 2026-03-31
--   revisions = aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa,bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb
-- settings
--   additional_table_filters = {'campaigns_closed':'account_id = unhex(\'6f27686172652022605c207b6163636f756e743a537472696e677d\')','closes':'account_id = unhex(\'6f27686172652022605c207b6163636f756e743a537472696e677d\')'}
--   optimize_move_to_prewhere = 0
--   optimize_use_projections = 0
--   output_format_json_quote_64bit_integers = 0
--   output_format_json_quote_decimals = 0
--   output_format_json_escape_forward_slashes = 0
--   output_format_parallel_formatting = 0
--   output_format_decimal_trailing_zeros = 0
--   format_template_resultset_format = {"result":{"last_update_time":"2026-04-01 00:00:00 UTC","rows":[${data}],"column_metadata":[{"id":"start_time","type":"Date"},{"id":"end_time","type":"Date"},{"id":"campaign","type":"String"},{"id":"spent","type":"Money"}],"unconfirmed_revenue_dates":[]}}
--   format_template_row_format = {"start_time":"2026-03-01","end_time":"2026-03-31",${text:Raw},"spent":${spent:Raw}}
--   format_template_rows_between_delimiter = ,

SELECT toString(row_count) AS row_count, toString(spent) AS total_spent
FROM (SELECT count() AS row_count, sum(r.spent) AS spent
FROM (SELECT campaign_id, tupleElement(max((r.day, r.campaign)), 2) AS campaign, sum(r.spent) AS spent FROM campaigns_closed AS r FINAL WHERE account_id = {account:String} AND day BETWEEN {first:Date} AND {last:Date} AND revision IN {revisions:Array(String)} GROUP BY campaign_id) AS r);
-- parameters
--   account = o'hare "`\ {account:String}
--   first = 2026-03-01
--   last = 2026-03-31
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
