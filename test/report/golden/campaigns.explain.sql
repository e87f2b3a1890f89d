-- POST /v1/campaigns/explain

WITH
(SELECT mapFromArrays(groupArray(c.day), groupArray(c.at)) FROM (SELECT day, max(c.confirmed_at) AS at FROM confirmations AS c WHERE account_id = {account:String} AND day BETWEEN {first:Date} AND {last:Date} GROUP BY day) AS c) AS confirmed_days,
(SELECT groupArray(tuple(g.part AS part, g.reason AS reason, g.chunks AS chunks, g.first_day AS first_day, g.last_day AS last_day, g.is_folded AS is_folded, g.events AS events, g.impressions AS impressions, g.conversions AS conversions, g.referrals AS referrals, g.spent AS spent, g.latest AS latest, g.unconfirmed AS unconfirmed, g.confirmed_at AS confirmed_at)) FROM (
SELECT n.place <= {most:UInt32} AS is_told, if(is_told, n.chunk, 'more') AS part, if(is_told, n.reason, '') AS reason,
if(max(n.chunk IN ('', 'folded')), NULL, uniqExact(n.chunk)) AS chunks, max(n.chunk = 'folded') AS is_folded, min(n.first_day) AS first_day, max(n.last_day) AS last_day, sum(n.events) AS events, sum(n.impressions) AS impressions, sum(n.conversions) AS conversions, sum(n.referrals) AS referrals, sum(n.spent) AS spent, max(n.latest) AS latest, max(n.unconfirmed) AS unconfirmed, max(n.confirmed_at) AS confirmed_at
FROM (SELECT d.chunk AS chunk, d.reason AS reason, min(d.first_day) AS first_day, max(d.last_day) AS last_day, sum(d.events) AS events, sum(d.impressions) AS impressions, sum(d.conversions) AS conversions, sum(d.referrals) AS referrals, sum(d.spent) AS spent, max(d.latest) AS latest, max(d.unconfirmed) AS unconfirmed, max(d.confirmed_at) AS confirmed_at, row_number() OVER (ORDER BY latest, chunk, reason) AS place
FROM (SELECT toString(e.chunk) AS chunk, toString(e.reason) AS reason, e.day AS first_day, e.day AS last_day, count() AS events,
sum(e.impressions) AS impressions, sum(e.conversions) AS conversions, sum(e.referrals) AS referrals, sum(e.spend) AS spent,
max(e.loaded_at) AS latest, confirmed_days[first_day] AS confirmed_day,
toBool(maxIf(e.loaded_at, spend != 0 AND NOT e.confirmed) > confirmed_day) AS unconfirmed,
if(confirmed_day >= latest, confirmed_day, toDateTime64(0, 6)) AS confirmed_at
FROM events AS e PREWHERE advertiser_id = {account:String} AND day BETWEEN {first:Date} AND {last:Date} AND campaign_id = {row_campaign_id:String} AND device = {row_device:String} AND device IN {filter_device:Array(String)} GROUP BY chunk, reason, e.day) AS d GROUP BY chunk, reason) AS n GROUP BY is_told, part, reason) AS g) AS found,
arrayMap(each -> each.part, found) AS chunks_found,
(SELECT groupUniqArray(c.load_id) FROM load_chunks AS c WHERE chunk IN (SELECT arrayJoin(chunks_found))) AS loads_found
SELECT tuple(cell.figures AS row, s.parts AS parts) AS result
FROM (SELECT tuple(sum(told.part.impressions) AS impressions, sum(told.part.conversions) AS conversions, sum(told.part.referrals) AS referrals, sum(told.part.spent) AS spent) AS figures, arraySort(part -> (part.loaded_at, ifNull(part.chunk, ''), ifNull(part.reason, '')), groupArray(told.part)) AS parts
FROM (SELECT tuple(multiIf(p.part = 'folded', 'pruned', p.part = '', 'by_hand', p.part = 'more', 'more', l.kind = 'replay', 'replay', 'events') AS kind, if(c.load = '', NULL, c.load) AS load, if(l.kind = 'replay', replaceOne(l.file, 'replay of ', ''), NULL) AS corrects, if(p.part IN ('', 'folded', 'more'), NULL, p.part) AS chunk, nullIf(p.reason, '') AS reason, p.chunks AS chunks, p.first_day AS first_day, p.last_day AS last_day, if(p.is_folded, NULL, p.events) AS events, p.impressions AS impressions, p.conversions AS conversions, p.referrals AS referrals, p.spent AS spent, replaceOne(toString(p.latest), ' ', 'T') || 'Z' AS loaded_at, p.unconfirmed AS unconfirmed, if(toUInt64(p.confirmed_at) = 0, NULL, replaceOne(toString(p.confirmed_at), ' ', 'T') || 'Z') AS confirmed_at) AS part FROM (SELECT arrayJoin(found) AS p) AS f
LEFT JOIN (SELECT chunk, max(tuple(toUInt64(c.loaded_at) > 0, c.sent_at, c.load_id)).3 AS load FROM load_chunks AS c WHERE chunk IN (SELECT arrayJoin(chunks_found)) GROUP BY chunk) AS c ON c.chunk = p.part
LEFT JOIN (SELECT load_id, toString(l.kind) AS kind, l.file AS file FROM loads AS l FINAL WHERE load_id IN (SELECT arrayJoin(loads_found))) AS l ON l.load_id = c.load) AS told
) AS s CROSS JOIN (SELECT tuple(sum(r.impressions) AS impressions, sum(r.conversions) AS conversions, sum(r.referrals) AS referrals, sum(r.spent) AS spent) AS figures
FROM campaigns_device_date AS r PREWHERE account_id = {account:String} AND day BETWEEN {first:Date} AND {last:Date} AND campaign_id = {row_campaign_id:String} AND device = {row_device:String} AND device IN {filter_device:Array(String)}) AS cell
WHERE throwIf(s.figures != cell.figures, 'the parts do not add up to the row') = 0;
-- parameters
--   account = o'hare "`\ {account:String}
--   first = 2026-03-01
--   last = 2026-03-31
--   filter_device = o'hare
--   row_campaign_id = o'hare
--   row_device = 2026
--   most = 10000
-- settings
--   additional_table_filters = {'campaigns_device_date':'account_id = unhex(\'6f27686172652022605c207b6163636f756e743a537472696e677d\')','campaigns_date':'account_id = unhex(\'6f27686172652022605c207b6163636f756e743a537472696e677d\')','confirmations':'account_id = unhex(\'6f27686172652022605c207b6163636f756e743a537472696e677d\')','events':'advertiser_id = unhex(\'6f27686172652022605c207b6163636f756e743a537472696e677d\')'}
--   optimize_move_to_prewhere = 0
--   optimize_use_projections = 0
--   output_format_json_quote_64bit_integers = 0
--   output_format_json_quote_decimals = 0
--   output_format_json_escape_forward_slashes = 0
--   output_format_parallel_formatting = 0
--   output_format_decimal_trailing_zeros = 0
--   optimize_functions_to_subcolumns = 0
--   enable_named_columns_in_function_tuple = 1
--   wait_end_of_query = 1
