import * as z from 'zod';
import { type Breakdown, endpointName, endpoints, familyOf } from '../../../catalog/breakdowns.ts';
import type { Catalog } from '../../../catalog/catalog.ts';
import { closesAnswer, closesBody } from '../../close/account-closes.ts';
import { comparisonAnswer } from '../../reconcile/answer.ts';
import { adjustmentsBody, closedBreakdown } from '../../report/adjustments.ts';
import { changesAnswer, changesBody } from '../../report/changes/changes.ts';
import { isCount, isFigure, type loadColumns, type RowColumn, rowColumns } from '../../report/columns.ts';
import { explainBody } from '../../report/explain/explain-request.ts';
import { explanationAnswer } from '../../report/explain/explanation.ts';
import { type ReportFormatName, reportFormats } from '../../report/formats.ts';
import type { ReportOptions } from '../../report/options.ts';
import { requestSchema } from '../../report/request.ts';
import { linkAnswer } from '../export/links.ts';
import { problemCodes, problemSchema } from '../request/problems.ts';
import { exampleTexts, exampleUpdateTime } from './examples.ts';
import type { JsonSchema } from './model.ts';

const named = '#/components/schemas/';
export const schemaRef = (name: string): JsonSchema => ({ $ref: named + name });

/** The name of a schema: `CampaignsDeviceDateRequest`. */
export function schemaName(endpoint: string, what: string): string {
  return `${endpoint}_${what}`.replace(/(^|_)(.)/g, (_, _separator, letter: string) => letter.toUpperCase());
}

/** The schema of a request for a report or a link to one, without the fields that its breakdown refuses; rules between them stay sentences. */
export function jsonSchema(schema: z.ZodType): JsonSchema {
  return withoutRefused(z.toJSONSchema(schema, { io: 'input' }) as JsonSchema);
}

/** The schema of anything else, with all fields, and without their titles, which name values on a command line. */
export function schemaOf(schema: z.ZodType): JsonSchema {
  const { $schema: _, ...rest } = z.toJSONSchema(schema, {
    io: 'input',
    override: ({ jsonSchema }) => {
      delete jsonSchema.title;
    },
  });
  return rest as JsonSchema;
}

/** The schema without the fields that this breakdown refuses, whatever their value. */
function withoutRefused({ $schema: _, $id: __, ...schema }: JsonSchema): JsonSchema {
  const { properties } = schema;
  if (!properties) return schema;
  const taken = Object.entries(properties).filter(([, field]) => field.not === undefined);
  return { ...schema, properties: Object.fromEntries(taken) };
}

/** The schemas of requests, which also judge them, and of answers, by the names that they have among the components. */
export function componentSchemas(catalog: Catalog): Record<string, JsonSchema> {
  const byName = z.registry<{ id: string }>();
  const name = <Schema extends z.ZodType>(id: string, schema: Schema) => {
    byName.add(schema, { id });
    return schema;
  };
  const columnType = name('ColumnType', z.enum(columnTypes).describe('How a column is formatted.'));
  for (const { path, breakdown } of endpoints(catalog)) {
    if (catalog.aliases[path] !== undefined) continue;
    const endpoint = endpointName(path);
    const fields = (columns: readonly RowColumn[]) =>
      Object.fromEntries(columns.map((column) => [column.id, fieldOf(column, breakdown)]));
    const nameReport = (kind: string, row: z.ZodType, columns: readonly RowColumn[], more = {}) => {
      const rows = name(kind + schemaName(endpoint, 'Row'), row);
      const result = z.strictObject({ ...envelope(columns, rows, columnType), ...more });
      name(kind + schemaName(endpoint, 'Report'), z.strictObject({ result }));
    };
    name(schemaName(endpoint, 'Request'), requestSchema(catalog, breakdown));
    const plain = rowColumns(catalog, breakdown);
    nameReport('', z.strictObject(fields(plain)), plain);
    const all = rowColumns(catalog, breakdown, everyField);
    const figures = z.strictObject(fields(all.filter(isFigure))).partial();
    const isPlain = ({ id }: RowColumn) => plain.some((column) => column.id === id);
    const texts = fields(all.filter((column) => !isFigure(column) && isPlain(column)));
    const ids = z
      .strictObject(fields(all.filter((column) => !isFigure(column) && !isPlain(column))))
      .partial();
    nameReport('Options', z.strictObject({ ...texts, ...ids.shape, ...figures.shape }), all, {
      totals: figures.optional().describe('With `totals`: the figures of all rows together.'),
      ...optionsEnvelope,
    });
  }
  for (const format of rowFormats) name(schemaName(format, 'Rows'), rowsOf(format));
  name('Link', linkAnswer);
  name('ChangesRequest', changesBody);
  name('Changes', z.strictObject({ result: changesAnswer }));
  name('ClosesRequest', closesBody);
  name('Closes', z.strictObject({ result: closesAnswer }));
  for (const family of Object.keys(catalog.families)) {
    name(schemaName(family, 'ExplainRequest'), explainBody(catalog, family));
    const result = explanationAnswer(catalog, family);
    name(schemaName(family, 'Explanation'), z.strictObject({ result }));
    name(schemaName(family, 'Comparison'), z.strictObject({ result: comparisonAnswer(catalog, family) }));
    name(schemaName(family, 'AdjustmentsRequest'), adjustmentsBody(catalog, family));
    name(schemaName(family, 'Adjustments'), adjustmentsAnswer(catalog, family, columnType));
  }
  name('Health', z.strictObject({ status: z.literal('ok') }));
  name('Problem', problemSchema(problemCodes));
  const { schemas } = z.toJSONSchema(byName, { io: 'input', uri: (id) => named + id });
  return Object.fromEntries(
    Object.entries(schemas).map(([id, schema]) => [id, withoutRefused(schema as JsonSchema)]),
  );
}

/** Rows of the finest breakdown by day, whose figures are differences. */
function adjustmentsAnswer(catalog: Catalog, family: string, columnType: z.ZodType): z.ZodType {
  const breakdown = closedBreakdown(catalog, family);
  const metrics = Object.keys(familyOf(catalog, family).measures);
  const columns = rowColumns(catalog, breakdown, { ids: true, metrics, by_load: true });
  const difference = (column: RowColumn) =>
    (isCount(column) ? z.number().meta({ type: 'integer' }) : z.number()).describe(
      `\`${column.id}\` of today less that of the close.`,
    );
  const described = (column: RowColumn) => {
    const field = isFigure(column) ? difference(column) : fieldOf(column, breakdown);
    return column.source.kind === 'load' ? field.optional() : field;
  };
  const fields = columns.map((column) => [column.id, described(column)]);
  const figures = Object.fromEntries(fields.filter(([id]) => metrics.includes(String(id))));
  const totals = z
    .strictObject(figures)
    .optional()
    .describe('With `totals`: the differences of all rows together.');
  const { row_count } = optionsEnvelope;
  const result = {
    ...envelope(columns, z.strictObject(Object.fromEntries(fields)), columnType),
    totals,
    row_count,
  };
  return z.strictObject({ result: z.strictObject(result) });
}

const loadTexts: Readonly<Record<(typeof loadColumns)[number], string>> = {
  changed_at:
    'With `by_load`: when the load sent it (the last part of it, where there are several), or when taking it back or replacing it began; RFC 3339, to the microsecond. Empty where `change` is `unknown`.',
  change:
    'With `by_load`: `loaded`; `taken_back` or `replaced`; `by_hand`, past the loader; or `unknown`: what the events that are kept do not tell. While a load is arriving, it and `unknown` may both stand there, and cancel out.',
  load: 'With `by_load`: the load that brought it; empty where there is no load.',
  reason: 'With `by_load`: why its records came, as they say themselves; empty where they do not.',
};

const columnTypes = ['String', 'Date', 'Money', 'Numeric'] as const satisfies RowColumn['type'][];

/** The options that add every field to a row that options can add. */
const everyField: ReportOptions = { compare_to: { start: '', end: '' }, ids: true };

export const rowFormats = (Object.keys(reportFormats) as ReportFormatName[]).filter(
  (format) => format !== 'json',
);

/** The rows alone, as every format but JSON has them. */
function rowsOf(format: ReportFormatName): z.ZodType {
  const { description, ...of } = reportFormats[format];
  return z.string().meta({ description, ...('countType' in of && { format: 'binary' }) });
}

const date = z.string().meta({ format: 'date' });
/** A count has no maximum: sums have as many digits as they need. */
const count = z.number().meta({ type: 'integer', minimum: 0 });

function envelope(
  columns: readonly RowColumn[],
  row: z.ZodType,
  columnType: z.ZodType,
): Record<string, z.ZodType> {
  const column = z.strictObject({
    id: z.enum(columns.map(({ id }) => id)).describe('The name of a row field.'),
    type: columnType,
  });
  return {
    last_update_time: z
      .string()
      .regex(/^\d{4}-\d{2}-\d{2} \d{2}:\d{2}:\d{2} \S+$/)
      .meta({
        description: 'The time of the request with its time zone, `yyyy-mm-dd hh:mm:ss TZ`.',
        examples: [exampleUpdateTime],
      }),
    rows: z.array(row).describe('Every row, in the order of the grouping keys, the day first.'),
    column_metadata: z.array(column).meta({
      description: 'How each row field is formatted, in the order of the row.',
      uniqueItems: true,
    }),
    unconfirmed_revenue_dates: z.array(date).meta({
      description: 'The days of the range whose money may still change, ascending.',
      uniqueItems: true,
    }),
  };
}

/** What optional fields of the body add to the envelope, beside `totals`. */
const optionsEnvelope = {
  row_count: count.optional().describe('With `limit`: how many rows there are without it.'),
  compare_to: z
    .strictObject({ start_time: date, end_time: date })
    .optional()
    .describe('With `compare_to`: the days that figures are compared with.'),
};

function fieldOf(column: RowColumn, breakdown: Breakdown): z.ZodType {
  const { id, type, source } = column;
  const field = (schema: z.ZodType, description: string) =>
    schema.meta({ ...schema.meta(), description, 'x-column-type': type });
  switch (source.kind) {
    case 'range': {
      const edge = id === 'start_time' ? 'First' : 'Last';
      return field(
        date,
        breakdown.day ? 'The day that the row covers.' : `${edge} day of the range, as asked for.`,
      );
    }
    case 'dimension': {
      const { key } = source.dimension;
      const { name } = source.column;
      const what = key.replace(/_id$/, '').replaceAll('_', ' ');
      const otherwise = name?.otherwise === 'id' ? 'its id' : 'empty';
      const examples = exampleTexts[id];
      return field(
        z.string().meta({ ...(examples && { examples }) }),
        name
          ? `The ${name.attribute} of the ${what}; ${otherwise} where none is known.`
          : `The ${what}${key === what ? '' : "'s id"}.`,
      );
    }
    case 'load':
      return field(z.string(), loadTexts[source.column]);
    case 'measure':
      return type === 'Money'
        ? field(z.number(), 'Amount of money, exact, up to 6 places; corrections included.')
        : field(count, `Number of ${id.replaceAll('_', ' ')}.`);
    case 'ratio': {
      const { numerator, denominator, times } = source;
      const factor = times === 1 ? '' : `${times} × `;
      return field(
        z.number(),
        `${factor}\`${numerator}\` / \`${denominator}\`, rounded to 6 places; 0 where \`${denominator}\` is 0.`,
      );
    }
    case 'change':
      return field(
        isCount(source.now) ? z.number().meta({ type: 'integer' }) : z.number(),
        `\`${source.now.id}\` less \`${source.before.id}\`.`,
      );
  }
}
