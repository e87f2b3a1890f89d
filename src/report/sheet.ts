import { covered, expression } from './column-sql.ts';
import { isCount, isFigure, type RowColumn } from './columns.ts';
import { daysBetween } from './days.ts';
import type { Plan } from './plan.ts';
import type { Template } from './template.ts';
import { type CellStyle, styleOf } from './xlsx/parts.ts';

/** Of a report: a sheet holds 1,048,576, with head and totals. */
export const maxRows = 1_048_574;

/** The day that is 0 to a spreadsheet, which counts a 29 February 1900: right for all days after it. */
const dayZero = '1899-12-30';
const firstDate = '1900-03-01';

/**
 * What the statement selects for FORMAT Template, and the template: a sheet of SpreadsheetML (ECMA-376) with a row of XML
 * for each row. Texts are text cells, so that nothing in them is run as a formula; days are dates; figures have the digits
 * of the database.
 */
export function sheetOf(columns: readonly RowColumn[], plan: Plan): Template {
  const figures = columns.filter(isFigure);
  const figureCells = (isTotal: boolean) =>
    figures.map((column) => numberCell(expression(column, plan), styleOf(kindOf(column), isTotal)));
  const texts = columns.filter((column) => !figures.includes(column)).map((column) => cell(column, plan));
  const beforeTotals = [headCell('Total'), '<c/>'.repeat(texts.length - 1)].join('');
  return {
    selected: heldRow([...texts, ...figureCells(false)]),
    totals: `${row([`'${beforeTotals}'`, ...figureCells(true)])} AS text`,
    settings: {
      format_template_resultset_format: sheetTemplate(columns, plan),
      // biome-ignore lint/suspicious/noTemplateCurlyInString: a placeholder of FORMAT Template
      format_template_row_format: '${text:Raw}',
      format_template_rows_between_delimiter: '',
    },
  };
}

const row = (cells: readonly string[]) => `concat('<row>', ${cells.join(', ')}, '</row>')`;

function sheetTemplate(columns: readonly RowColumn[], { options, currency }: Plan): string {
  const head = ({ id, type }: RowColumn) =>
    headCell(type === 'Money' && currency ? `${id} (${currency})` : id);
  return [
    '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>\n',
    '<worksheet xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"><sheetViews>',
    '<sheetView tabSelected="1" workbookViewId="0">',
    '<pane ySplit="1" topLeftCell="A2" activePane="bottomLeft" state="frozen"/></sheetView></sheetViews>',
    '<sheetFormatPr defaultColWidth="18" defaultRowHeight="15"/>',
    `<sheetData><row>${columns.map(head).join('')}</row>`,
    // biome-ignore lint/suspicious/noTemplateCurlyInString: a placeholder of FORMAT Template
    '${data}',
    // biome-ignore lint/suspicious/noTemplateCurlyInString: likewise
    options.totals ? '${totals}' : '',
    '</sheetData></worksheet>',
  ].join('');
}

function kindOf({ type, source, ...column }: RowColumn): CellStyle {
  if (type === 'String') return 'text';
  if (type === 'Date') return 'date';
  if (source.kind === 'change') return kindOf(source.now);
  if (source.kind === 'ratio') return 'ratio';
  return isCount({ type, source, ...column }) ? 'count' : 'money';
}

/** SQL for the cell of a day or of a text. */
function cell(column: RowColumn, plan: Plan): string {
  const { id, source } = column;
  if (source.kind !== 'range') {
    const open = `<c t="inlineStr" s="${styleOf('text')}"><is><t xml:space="preserve">`;
    return `'${open}', ${xmlText(expression(column, plan))}, '</t></is></c>'`;
  }
  if (plan.breakdown.day) {
    const day = `${daysBetween(dayZero, '1970-01-01')} + toInt32(${covered(id, plan)})`;
    return numberCell(day, styleOf('date'));
  }
  const [day, parameter] =
    id === 'start_time' ? [plan.range.start, '{start:String}'] : [plan.range.end, '{end:String}'];
  return day < firstDate
    ? `'<c t="inlineStr" s="${styleOf('text')}"><is><t>', ${parameter}, '</t></is></c>'`
    : numberCell(parameter, styleOf('date'));
}

/** A day as its number; as it is, if a sheet has no number for it. */
export function sheetDay(day: string): string {
  return day < firstDate ? day : `${daysBetween(dayZero, day)}`;
}

const numberCell = (value: string, style: number) => `'<c s="${style}"><v>', ${value}, '</v></c>'`;

/** A name of ours, which needs no quoting. */
const headCell = (name: string) =>
  `<c t="inlineStr" s="${styleOf('text', true)}"><is><t>${name}</t></is></c>`;

/**
 * SQL for a text as XML. To a spreadsheet `_x0001_` is a character (ECMA-376 part 1, 22.9.2.19), so that a text which looks
 * like that has its `_` written so.
 */
const xmlText = (text: string) =>
  String.raw`encodeXMLComponent(replaceRegexpAll(${text}, '_(x[0-9A-Fa-f]{4})', '_x005F_\\1'))`;

/** What XML 1.0 cannot hold, and a CR, which readers of XML make an LF. */
const unheld = String.raw`[\\x00-\\x08\\x0B-\\x1F\\x{FFFE}\\x{FFFF}]`;

/** SQL for a row of cells with the numbers of all characters that XML cannot hold. */
function heldRow(cells: readonly string[]): string {
  const code = "if(length(c) = 1, concat('00', hex(c)), concat('FFF', right(hex(c), 1)))";
  const held = `arrayMap(c -> if(match(c, '${unheld}'), concat('_x', ${code}, '_'), c), ngrams(xml, 1))`;
  return `if(match(${row(cells)} AS xml, '${unheld}'), arrayStringConcat(${held}), xml) AS text`;
}
