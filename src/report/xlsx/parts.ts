/** How a cell is shown. */
export type CellStyle = 'text' | 'date' | 'count' | 'money' | 'ratio';

/**
 * Formats that ECMA-376 numbers (part 1, 18.8.30), shown as the locale of the reader has them; ratios have one of their
 * own. What is typed into a text cell stays text.
 */
const formats: Readonly<Record<CellStyle, number>> = { text: 49, date: 14, count: 3, money: 4, ratio: 164 };

const styles = Object.keys(formats);

/** The number of a style, in `cellXfs` below; 0 is that of a cell without any. */
export function styleOf(style: CellStyle, isBold = false): number {
  return 1 + styles.indexOf(style) + (isBold ? styles.length : 0);
}

const declaration = '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>\n';
const main = 'http://schemas.openxmlformats.org/spreadsheetml/2006/main';
const inPackage = 'http://schemas.openxmlformats.org/package/2006';
const inDocument = 'http://schemas.openxmlformats.org/officeDocument/2006/relationships';
const mediaType = 'application/vnd.openxmlformats-officedocument.spreadsheetml';

export const sheetPath = 'xl/worksheets/sheet1.xml';

/** What a file has beside its sheet (ECMA-376 part 1, 12.3), by path. */
export const parts: Readonly<Record<string, string>> = {
  '[Content_Types].xml': `${declaration}<Types xmlns="${inPackage}/content-types"><Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/><Default Extension="xml" ContentType="application/xml"/><Override PartName="/xl/workbook.xml" ContentType="${mediaType}.sheet.main+xml"/><Override PartName="/${sheetPath}" ContentType="${mediaType}.worksheet+xml"/><Override PartName="/xl/styles.xml" ContentType="${mediaType}.styles+xml"/></Types>`,
  '_rels/.rels': related([['officeDocument', 'xl/workbook.xml']]),
  'xl/workbook.xml': `${declaration}<workbook xmlns="${main}" xmlns:r="${inDocument}"><sheets><sheet name="Report" sheetId="1" r:id="rId1"/></sheets></workbook>`,
  'xl/_rels/workbook.xml.rels': related([
    ['worksheet', 'worksheets/sheet1.xml'],
    ['styles', 'styles.xml'],
  ]),
  'xl/styles.xml': `${declaration}<styleSheet xmlns="${main}"><numFmts count="1"><numFmt numFmtId="164" formatCode="#,##0.00####"/></numFmts><fonts count="2"><font><sz val="11"/><name val="Calibri"/></font><font><b/><sz val="11"/><name val="Calibri"/></font></fonts><fills count="2"><fill><patternFill patternType="none"/></fill><fill><patternFill patternType="gray125"/></fill></fills><borders count="1"><border><left/><right/><top/><bottom/><diagonal/></border></borders><cellStyleXfs count="1"><xf numFmtId="0" fontId="0" fillId="0" borderId="0"/></cellStyleXfs>${cellFormats()}</styleSheet>`,
};

function related(parts: readonly (readonly [type: string, target: string])[]): string {
  const each = parts.map(
    ([type, target], n) => `<Relationship Id="rId${n + 1}" Type="${inDocument}/${type}" Target="${target}"/>`,
  );
  return `${declaration}<Relationships xmlns="${inPackage}/relationships">${each.join('')}</Relationships>`;
}

function cellFormats(): string {
  const format = (number: number, font: number) =>
    `<xf numFmtId="${number}" fontId="${font}" fillId="0" borderId="0" xfId="0" applyNumberFormat="1" applyFont="1"/>`;
  const each = [0, 1].flatMap((font) => Object.values(formats).map((number) => format(number, font)));
  return `<cellXfs count="${each.length + 1}">${format(0, 0)}${each.join('')}</cellXfs>`;
}
