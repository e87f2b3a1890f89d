-- POST /v1/ad_units/breakdowns/site_date
-- {"compare_to":"previous_month","metrics":["rtr","impressions"]}

SELECT if(match(concat('<row>', '<c s="2"><v>', 25569 + toInt32(period), '</v></c>', '<c s="2"><v>', 25569 + toInt32(period), '</v></c>', '<c t="inlineStr" s="1"><is><t xml:space="preserve">', encodeXMLComponent(replaceRegexpAll(dictGetOrDefault('ad_unit_names', 'name', ({account:String}, ad_unit_id), ad_unit_id), '_(x[0-9A-Fa-f]{4})', '_x005F_\\1')), '</t></is></c>', '<c t="inlineStr" s="1"><is><t xml:space="preserve">', encodeXMLComponent(replaceRegexpAll(dictGetOrDefault('site_names', 'name', ({account:String}, site_id), site_id), '_(x[0-9A-Fa-f]{4})', '_x005F_\\1')), '</t></is></c>', '<c s="5"><v>', if(impressions = 0, toDecimal128(0, 7), round(toDecimal128(referrals, 7) / greatest(impressions, 1), 6)), '</v></c>', '<c s="5"><v>', if(impressions_compared = 0, toDecimal128(0, 7), round(toDecimal128(referrals_compared, 7) / greatest(impressions_compared, 1), 6)), '</v></c>', '<c s="5"><v>', if(impressions = 0, toDecimal128(0, 7), round(toDecimal128(referrals, 7) / greatest(impressions, 1), 6)) - if(impressions_compared = 0, toDecimal128(0, 7), round(toDecimal128(referrals_compared, 7) / greatest(impressions_compared, 1), 6)), '</v></c>', '<c s="3"><v>', impressions, '</v></c>', '<c s="3"><v>', impressions_compared, '</v></c>', '<c s="3"><v>', impressions - impressions_compared, '</v></c>', '</row>') AS xml, '[\\x00-\\x08\\x0B-\\x1F\\x{FFFE}\\x{FFFF}]'), arrayStringConcat(arrayMap(c -> if(match(c, '[\\x00-\\x08\\x0B-\\x1F\\x{FFFE}\\x{FFFF}]'), concat('_x', if(length(c) = 1, concat('00', hex(c)), concat('FFF', right(hex(c), 1))), '_'), c), ngrams(xml, 1))), xml) AS text
FROM (SELECT period, ad_unit_id, site_id, sum(s.impressions) AS impressions, sum(s.referrals) AS referrals, sum(s.impressions_compared) AS impressions_compared, sum(s.referrals_compared) AS referrals_compared FROM (SELECT day AS period, ad_unit_id, site_id, sum(r.impressions) AS impressions, sum(r.referrals) AS referrals, 0 AS impressions_compared, 0 AS referrals_compared FROM ad_units_site_date AS r WHERE account_id = {account:String} AND day BETWEEN {first:Date} AND {last:Date} GROUP BY period, ad_unit_id, site_id
UNION ALL
SELECT day + {later:Int32} AS period, ad_unit_id, site_id, 0 AS impressions, 0 AS referrals, sum(r.impressions) AS impressions_compared, sum(r.referrals) AS referrals_compared FROM ad_units_site_date AS r WHERE account_id = {account:String} AND day BETWEEN {compared_first:Date} AND {compared_last:Date} GROUP BY period, ad_unit_id, site_id) AS s GROUP BY period, ad_unit_id, site_id)
ORDER BY period, ad_unit_id, site_id
FORMAT Template;
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
--   output_format_json_quote_64bit_integers = 0
--   output_format_json_quote_decimals = 0
--   output_format_json_escape_forward_slashes = 0
--   output_format_parallel_formatting = 0
--   output_format_decimal_trailing_zeros = 0
--   format_template_resultset_format = <?xml version="1.0" encoding="UTF-8" standalone="yes"?>
<worksheet xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"><sheetViews><sheetView tabSelected="1" workbookViewId="0"><pane ySplit="1" topLeftCell="A2" activePane="bottomLeft" state="frozen"/></sheetView></sheetViews><sheetFormatPr defaultColWidth="18" defaultRowHeight="15"/><sheetData><row><c t="inlineStr" s="6"><is><t>start_time</t></is></c><c t="inlineStr" s="6"><is><t>end_time</t></is></c><c t="inlineStr" s="6"><is><t>ad_unit</t></is></c><c t="inlineStr" s="6"><is><t>site</t></is></c><c t="inlineStr" s="6"><is><t>rtr</t></is></c><c t="inlineStr" s="6"><is><t>rtr_compared</t></is></c><c t="inlineStr" s="6"><is><t>rtr_change</t></is></c><c t="inlineStr" s="6"><is><t>impressions</t></is></c><c t="inlineStr" s="6"><is><t>impressions_compared</t></is></c><c t="inlineStr" s="6"><is><t>impressions_change</t></is></c></row>${data}</sheetData></worksheet>
--   format_template_row_format = ${text:Raw}
--   format_template_rows_between_delimiter = 
