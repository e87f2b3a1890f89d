-- POST /v1/campaigns/breakdowns/creative
-- {"start_time":"1900-02-28","end_time":"1900-03-01","metrics":["spent"]}

SELECT if(match(concat('<row>', '<c t="inlineStr" s="1"><is><t>', {start:String}, '</t></is></c>', '<c s="2"><v>', {end:String}, '</v></c>', '<c t="inlineStr" s="1"><is><t xml:space="preserve">', encodeXMLComponent(replaceRegexpAll(dictGetOrDefault('campaign_names', 'name', ({account:String}, campaign_id), campaign_id), '_(x[0-9A-Fa-f]{4})', '_x005F_\\1')), '</t></is></c>', '<c t="inlineStr" s="1"><is><t xml:space="preserve">', encodeXMLComponent(replaceRegexpAll(dictGetOrDefault('creative_headlines', 'headline', ({account:String}, creative_id), ''), '_(x[0-9A-Fa-f]{4})', '_x005F_\\1')), '</t></is></c>', '<c t="inlineStr" s="1"><is><t xml:space="preserve">', encodeXMLComponent(replaceRegexpAll(creative_id, '_(x[0-9A-Fa-f]{4})', '_x005F_\\1')), '</t></is></c>', '<c s="4"><v>', spent, '</v></c>', '</row>') AS xml, '[\\x00-\\x08\\x0B-\\x1F\\x{FFFE}\\x{FFFF}]'), arrayStringConcat(arrayMap(c -> if(match(c, '[\\x00-\\x08\\x0B-\\x1F\\x{FFFE}\\x{FFFF}]'), concat('_x', if(length(c) = 1, concat('00', hex(c)), concat('FFF', right(hex(c), 1))), '_'), c), ngrams(xml, 1))), xml) AS text
FROM (SELECT campaign_id, creative_id, sum(r.spent) AS spent FROM campaigns_creative_date AS r WHERE account_id = {account:String} AND day BETWEEN {first:Date} AND {last:Date} GROUP BY campaign_id, creative_id)
ORDER BY campaign_id, creative_id
FORMAT Template;
-- parameters
--   account = o'hare "`\ {account:String}
--   first = 2149-06-06
--   last = 1970-01-01
--   start = 1900-02-28
--   end = 61
-- settings
--   additional_table_filters = {'campaigns_creative_date':'account_id = unhex(\'6f27686172652022605c207b6163636f756e743a537472696e677d\')','campaigns_date':'account_id = unhex(\'6f27686172652022605c207b6163636f756e743a537472696e677d\')','confirmations':'account_id = unhex(\'6f27686172652022605c207b6163636f756e743a537472696e677d\')'}
--   optimize_move_to_prewhere = 0
--   optimize_use_projections = 0
--   output_format_json_quote_64bit_integers = 0
--   output_format_json_quote_decimals = 0
--   output_format_json_escape_forward_slashes = 0
--   output_format_parallel_formatting = 0
--   output_format_decimal_trailing_zeros = 0
--   format_template_resultset_format = <?xml version="1.0" encoding="UTF-8" standalone="yes"?>
<worksheet xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"><sheetViews><sheetView tabSelected="1" workbookViewId="0"><pane ySplit="1" topLeftCell="A2" activePane="bottomLeft" state="frozen"/></sheetView></sheetViews><sheetFormatPr defaultColWidth="18" defaultRowHeight="15"/><sheetData><row><c t="inlineStr" s="6"><is><t>start_time</t></is></c><c t="inlineStr" s="6"><is><t>end_time</t></is></c><c t="inlineStr" s="6"><is><t>campaign</t></is></c><c t="inlineStr" s="6"><is><t>creative_headline</t></is></c><c t="inlineStr" s="6"><is><t>creative_id</t></is></c><c t="inlineStr" s="6"><is><t>spent</t></is></c></row>${data}</sheetData></worksheet>
--   format_template_row_format = ${text:Raw}
--   format_template_rows_between_delimiter = 
