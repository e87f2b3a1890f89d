import type { Breakdown } from '../../../catalog/breakdowns.ts';
import type { Catalog } from '../../../catalog/catalog.ts';
import { isCount, isFigure, type RowColumn, rowColumns } from '../../report/columns.ts';
import { type ReportFormatName, reportFormats } from '../../report/formats.ts';
import type { ReportOptions } from '../../report/options.ts';
import { exampleRows, exampleTexts, exampleUnconfirmedDates, exampleUpdateTime } from './examples.ts';
import { type Content, headerRefs, type JsonSchema, type ResponseObject, schemaRef } from './model.ts';
import { bodySchema } from './options.ts';

const columnTypes: readonly RowColumn['type'][] = ['String', 'Date', 'Money', 'Numeric'];
const formatNames = Object.keys(reportFormats) as ReportFormatName[];
const days = 'Days are text, counts signed 64-bit integers, money and ratios decimal.';

/** The rows alone, as every format but JSON has them. */
const rowsOnly: Readonly<Record<Exclude<ReportFormatName, 'json'>, JsonSchema>> = {
  ndjson: { type: 'string', description: 'One row a line, as a JSON object.' },
  csv: {
    type: 'string',
    description: 'RFC 4180: a line with the names of the row fields, then one row a line; text is quoted.',
  },
  arrow: { type: 'string', format: 'binary', description: `An Apache Arrow IPC stream. ${days}` },
  parquet: { type: 'string', format: 'binary', description: `An Apache Parquet file. ${days}` },
};

/** Schemas that the answers of all breakdowns share. */
export function sharedReportSchemas(): Record<string, JsonSchema> {
  return {
    ColumnType: { type: 'string', enum: columnTypes, description: 'How a column is formatted.' },
    ...Object.fromEntries(Object.entries(rowsOnly).map(([name, schema]) => [formatSchemaName(name), schema])),
  };
}

/** The schema of the rows alone in a format. */
export function formatSchemaName(format: string): string {
  return `${pascalCase(format)}Rows`;
}

/** The options that add every field to a row that options can add. */
const everyField: ReportOptions = { compare_to: { start: '', end: '' } };

/**
 * Schemas of one breakdown: what its body may have, its rows and its envelope, with nothing beside what
 * they list; and once more as optional fields of the body change them.
 */
export function breakdownSchemas(
  catalog: Catalog,
  breakdown: Breakdown,
  name: string,
): Record<string, JsonSchema> {
  const columns = rowColumns(catalog, breakdown);
  const more = rowColumns(catalog, breakdown, everyField);
  const propertiesOf = (some: readonly RowColumn[]) =>
    Object.fromEntries(some.map((column) => [column.id, columnSchema(column, breakdown)]));
  const texts = more.filter((column) => !isFigure(column)).map(({ id }) => id);
  const days = { type: 'string', format: 'date' };
  const row = `${pascalCase(name)}Row`;
  return {
    [requestSchemaName(name)]: bodySchema(catalog, breakdown),
    [row]: exactly(propertiesOf(columns)),
    [`${pascalCase(name)}Report`]: exactly({ result: exactly(envelope(columns, row)) }),
    [`Options${row}`]: atMost(propertiesOf(more), texts),
    [`Options${pascalCase(name)}Report`]: exactly({
      result: atMost(
        {
          ...envelope(more, `Options${row}`),
          totals: {
            description: 'With `totals`: the figures of all rows together.',
            ...atMost(propertiesOf(more.filter(isFigure)), []),
          },
          row_count: {
            type: 'integer',
            minimum: 0,
            description: 'With `limit`: how many rows there are without it.',
          },
          compare_to: {
            description: 'With `compare_to`: the days that figures are compared with.',
            ...exactly({ start_time: days, end_time: days }),
          },
        },
        Object.keys(envelope(columns, row)),
      ),
    }),
  };
}

/** The plain report first. */
function reportSchema(name: string): JsonSchema {
  return { anyOf: ['', 'Options'].map((kind) => schemaRef(`${kind}${pascalCase(name)}Report`)) };
}

export const requestSchemaName = (name: string): string => `${pascalCase(name)}Request`;

function envelope(columns: readonly RowColumn[], row: string): Record<string, JsonSchema> {
  return {
    last_update_time: {
      type: 'string',
      pattern: '^\\d{4}-\\d{2}-\\d{2} \\d{2}:\\d{2}:\\d{2} \\S+$',
      description: 'The time of the request with its time zone, `yyyy-mm-dd hh:mm:ss TZ`.',
      examples: [exampleUpdateTime],
    },
    rows: {
      type: 'array',
      description: 'Every row, in the order of the grouping keys, the day first.',
      items: schemaRef(row),
    },
    column_metadata: {
      type: 'array',
      description: 'How each row field is formatted, in the order of the row.',
      uniqueItems: true,
      items: exactly({
        id: {
          type: 'string',
          enum: columns.map(({ id }) => id),
          description: 'The name of a row field.',
        },
        type: schemaRef('ColumnType'),
      }),
    },
    unconfirmed_revenue_dates: {
      type: 'array',
      description: 'The days of the range whose money may still change, ascending.',
      uniqueItems: true,
      items: { type: 'string', format: 'date' },
    },
  };
}

/** The answer 200 of a breakdown, in every format there is. */
export function reportResponse(catalog: Catalog, breakdown: Breakdown, name: string): ResponseObject {
  const columns = rowColumns(catalog, breakdown);
  const rows = exampleRows(catalog, breakdown);
  const examples: Partial<Record<ReportFormatName, unknown>> = {
    json: {
      result: {
        last_update_time: exampleUpdateTime,
        rows,
        column_metadata: columns.map(({ id, type }) => ({ id, type })),
        unconfirmed_revenue_dates: exampleUnconfirmedDates,
      },
    },
    ndjson: rows.map((row) => `${JSON.stringify(row)}\n`).join(''),
    csv: [columns.map(({ id }) => id), ...rows.map(Object.values)]
      .map((values) => `${values.map((value) => JSON.stringify(value)).join(',')}\n`)
      .join(''),
  };
  const content: Content = Object.fromEntries(
    formatNames.map((format) => [
      reportFormats[format].mediaType,
      {
        schema: format === 'json' ? reportSchema(name) : schemaRef(formatSchemaName(format)),
        ...(examples[format] !== undefined && { example: examples[format] }),
      },
    ]),
  );
  return {
    description: 'The report, complete.',
    headers: headerRefs(['Adtally-Account', ...reportHeaderNames]),
    content,
  };
}

/** Of every report, also as a file. */
export const reportHeaderNames = [
  'X-Request-Id',
  'RateLimit',
  'RateLimit-Policy',
  'Last-Modified',
  'Cache-Status',
  'Vary',
  'Content-Encoding',
  'Content-Disposition',
  'Adtally-Last-Update-Time',
  'Adtally-Column-Types',
  'Adtally-Unconfirmed-Revenue-Dates',
  'Adtally-Row-Count',
  'Adtally-Totals',
  'Adtally-Compare-To',
];

function columnSchema({ id, type, source }: RowColumn, { day }: Breakdown): JsonSchema {
  const column = { 'x-column-type': type };
  switch (source.kind) {
    case 'range': {
      const edge = id === 'start_time' ? 'First' : 'Last';
      const description = day ? 'The day that the row covers.' : `${edge} day of the range, as asked for.`;
      return { type: 'string', format: 'date', description, ...column };
    }
    case 'dimension': {
      const { key } = source.dimension;
      const { name } = source.column;
      const what = key.replace(/_id$/, '').replaceAll('_', ' ');
      const otherwise = name?.otherwise === 'id' ? 'its id' : 'empty';
      const description = name
        ? `The ${name.attribute} of the ${what}; ${otherwise} where none is known.`
        : `The ${what}${key === what ? '' : "'s id"}.`;
      const examples = exampleTexts[id];
      return { type: 'string', description, ...(examples && { examples }), ...column };
    }
    case 'measure':
      return type === 'Money'
        ? {
            type: 'number',
            description: 'Amount of money, exact, up to 6 places; corrections included.',
            ...column,
          }
        : { type: 'integer', minimum: 0, description: `Number of ${id.replaceAll('_', ' ')}.`, ...column };
    case 'ratio': {
      const { numerator, denominator, times } = source;
      const factor = times === 1 ? '' : `${times} × `;
      const description = `${factor}\`${numerator}\` / \`${denominator}\`, rounded to 6 places; 0 where \`${denominator}\` is 0.`;
      return { type: 'number', description, ...column };
    }
    case 'change': {
      const description = `\`${source.now.id}\` less \`${source.before.id}\`.`;
      return { type: isCount(source.now) ? 'integer' : 'number', description, ...column };
    }
  }
}

/** An object with exactly these fields. */
function exactly(properties: Readonly<Record<string, JsonSchema>>): JsonSchema {
  return atMost(properties, Object.keys(properties));
}

function atMost(properties: Readonly<Record<string, JsonSchema>>, required: readonly string[]): JsonSchema {
  return { type: 'object', properties, required, additionalProperties: false };
}

function pascalCase(name: string): string {
  return name.replace(/(^|_)(.)/g, (_, _separator, letter: string) => letter.toUpperCase());
}
