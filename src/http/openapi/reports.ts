import * as z from 'zod';
import {
  type Breakdown,
  type Endpoint,
  endpointName,
  endpoints,
  familyOf,
  questionPath,
} from '../../../catalog/breakdowns.ts';
import type { Catalog, DimensionColumnId } from '../../../catalog/catalog.ts';
import type { Amount } from '../../../catalog/events.ts';
import { adjustmentsBody, closedBreakdown } from '../../report/adjustments.ts';
import {
  groupingDimensions,
  isCount,
  isFigure,
  type loadColumns,
  type RowColumn,
  rowColumns,
} from '../../report/columns.ts';
import { changeId } from '../../report/fields.ts';
import { reportFormats } from '../../report/formats.ts';
import { listed } from '../../report/option-schema.ts';
import type { ReportOptions } from '../../report/options.ts';
import { requestSchema } from '../../report/request.ts';
import type { Operation, PathItem } from './model.ts';
import { json, ofReport, operation, reportHeaders, rowFormats, rowsContent } from './operation.ts';
import { exampleOf, type NamedSchemas, schemaName } from './schemas.ts';

const headers = ['Adtally-Account', ...reportHeaders];

/** The endpoints of the contract, and the adjustments, whose rows are like theirs. */
export function reportPaths(catalog: Catalog, schemas: NamedSchemas): Record<string, PathItem> {
  schemas.name('ColumnType', columnType);
  for (const format of rowFormats) {
    const { description, ...of } = reportFormats[format];
    const rows = z.string().meta({ description, ...('countType' in of && { format: 'binary' }) });
    schemas.name(schemaName(format, 'Rows'), rows);
  }
  const own = endpoints(catalog).filter(({ path }) => catalog.aliases[path] === undefined);
  const operations = new Map(own.map((each) => [each.path, reportOperation(catalog, schemas, each)]));
  const aliases = Object.entries(catalog.aliases).flatMap(([path, target]): [string, Operation][] => {
    const same = operations.get(target);
    return same ? [[path, aliasOf(path, target, same)]] : [];
  });
  const adjustments = Object.keys(catalog.families).map((family): [string, Operation] => [
    questionPath(family, 'adjustments'),
    adjustmentsOperation(catalog, schemas, family),
  ]);
  return Object.fromEntries(
    [...operations, ...aliases, ...adjustments].map(([path, post]) => [path, { post }]),
  );
}

const aliasOf = (path: string, target: string, same: Operation): Operation => ({
  ...same,
  operationId: endpointName(path),
  summary: `${same.summary} (alias)`,
  description: `An alias: the same as \`${target}\`.`,
  'x-alias-of': target,
});

function reportOperation(catalog: Catalog, schemas: NamedSchemas, { path, breakdown }: Endpoint): Operation {
  const id = endpointName(path);
  const { entity, columns: metrics } = familyOf(catalog, breakdown.family);
  const keys = [entity, ...breakdown.dimensions];
  const row = [...keys.map((key) => key.replaceAll('_', ' ')), ...(breakdown.day ? ['day'] : [])];
  const added = groupingDimensions(catalog, breakdown)
    .slice(1)
    .flatMap(({ columns }) => columns.map((column) => `\`${column.id}\``));
  const sentences = [
    `One row per ${listed.format(row)}.`,
    added.length ? `Adds ${listed.format(added)} to every row.` : '',
    breakdown.day ? '`start_time` and `end_time` of a row are the day that it covers.' : '',
  ];
  const request = requestSchema(catalog, breakdown);
  const takes = {
    schema: schemas.body(schemaName(id, 'Request'), request).schema,
    examples: {
      range: { summary: 'Every row of a month.', value: exampleOf(request) },
      options: {
        summary: 'The ten rows that grew most since the month before.',
        value: {
          ...Object(exampleOf(request)),
          filters: { device: ['mobile'] },
          metrics: metrics.slice(-2),
          compare_to: 'previous_period',
          order_by: [{ field: changeId(metrics.at(-1) ?? ''), direction: 'desc' }],
          limit: 10,
          totals: true,
        },
      },
    },
  };
  return operation({
    id,
    tags: [breakdown.family],
    summary: `One row per ${listed.format(row)}`,
    description: sentences.filter(Boolean).join(' '),
    takes: json(takes),
    gives: { description: 'The report, complete.', content: reportContent(catalog, schemas, id, breakdown) },
    headers,
    refusals: ofReport,
  });
}

/** A report in every format there is. */
function reportContent(catalog: Catalog, schemas: NamedSchemas, id: string, breakdown: Breakdown) {
  const fields = (columns: readonly RowColumn[]) =>
    Object.fromEntries(columns.map((column) => [column.id, fieldOf(catalog, column, breakdown)]));
  const plain = rowColumns(catalog, breakdown);
  const all = rowColumns(catalog, breakdown, everyField);
  const figures = z.strictObject(fields(all.filter(isFigure))).partial();
  const isPlain = (column: RowColumn) => plain.some(({ id }) => id === column.id);
  const texts = all.filter((column) => !isFigure(column));
  const ids = z.strictObject(fields(texts.filter((column) => !isPlain(column)))).partial();
  const row = schemas.name(schemaName(id, 'Row'), z.strictObject(fields(plain)));
  const optionsRow = schemas.name(
    `Options${schemaName(id, 'Row')}`,
    z.strictObject({ ...fields(texts.filter(isPlain)), ...ids.shape, ...figures.shape }),
  );
  // The plain report first.
  const report = reportBody(schemas, schemaName(id, 'Report'), plain, row);
  const optionsReport = reportBody(schemas, `Options${schemaName(id, 'Report')}`, all, optionsRow, {
    totals: figures.optional().describe('With `totals`: the figures of all rows together.'),
    ...optionsEnvelope,
  });
  const example = Object(exampleOf(row));
  const lines = [Object.keys(example), Object.values(example)];
  return {
    ...json({ schema: { anyOf: [report.schema, optionsReport.schema] }, example: report.example }),
    ...rowsContent({
      ndjson: `${JSON.stringify(example)}\n`,
      csv: lines.map((values) => `${values.map((value) => JSON.stringify(value)).join(',')}\n`).join(''),
    }),
  };
}

function adjustmentsOperation(catalog: Catalog, schemas: NamedSchemas, family: string): Operation {
  const breakdown = closedBreakdown(catalog, family);
  const metrics = Object.keys(familyOf(catalog, family).measures);
  const columns = rowColumns(catalog, breakdown, { ids: true, metrics, by_load: true });
  const described = (column: RowColumn) => {
    if (isFigure(column))
      return difference(column).describe(`\`${column.id}\` of today less that of the close.`);
    const field = fieldOf(catalog, column, breakdown);
    return column.source.kind === 'load' ? field.optional() : field;
  };
  const row = z.strictObject(Object.fromEntries(columns.map((column) => [column.id, described(column)])));
  const figures = Object.fromEntries(Object.entries(row.shape).filter(([id]) => metrics.includes(id)));
  const report = reportBody(schemas, schemaName(family, 'Adjustments'), columns, row, {
    totals: z
      .strictObject(figures)
      .optional()
      .describe('With `totals`: the differences of all rows together.'),
    row_count: optionsEnvelope.row_count,
  });
  return operation({
    id: `${family}_adjustments`,
    tags: ['closes'],
    summary: `What changed in ${family} after their months were closed`,
    description:
      'Takes days of closed months and answers with today minus closed: a row for each day and all ids whose counts or amounts differ now, with the differences, names of today, and no ratios. Closed rows (`as_of` of a report) and adjustments are the rows of today, to the last digit. By default each month is compared with its last close; `as_of` names a revision. A month that is not closed is answered with 409. `by_load` splits each row by the loads that it came by, when, how and why.',
    takes: json(schemas.body(schemaName(family, 'AdjustmentsRequest'), adjustmentsBody(catalog, family))),
    gives: { description: 'What changed, complete.', content: { ...json(report), ...rowsContent() } },
    headers,
    refusals: ofReport,
  });
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
const columnType = z.enum(columnTypes).describe('How a column is formatted.');

/** The options that add every field to a row that options can add. */
const everyField: ReportOptions = { compare_to: { start: '', end: '' }, ids: true };

const date = z.string().meta({ format: 'date' });
/** A count has no maximum: sums have as many digits as they need. */
const count = z.number().meta({ type: 'integer', minimum: 0 });

/** The envelope of these columns, under that name. */
function reportBody(
  schemas: NamedSchemas,
  name: string,
  columns: readonly RowColumn[],
  row: z.ZodType,
  more: Readonly<Record<string, z.ZodType>> = {},
) {
  const column = z.strictObject({
    id: z.enum(columns.map(({ id }) => id)).describe('The name of a row field.'),
    type: columnType,
  });
  const result = z.strictObject({
    last_update_time: z
      .string()
      .regex(/^\d{4}-\d{2}-\d{2} \d{2}:\d{2}:\d{2} \S+$/)
      .meta({
        description: 'The time of the request with its time zone, `yyyy-mm-dd hh:mm:ss TZ`.',
        examples: ['2026-11-02 09:30:00 UTC'],
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
    ...more,
  });
  const shown = Object(exampleOf(result));
  const column_metadata = columns.flatMap(({ id, type }) => (id in shown.rows[0] ? [{ id, type }] : []));
  const example = { result: { ...shown, column_metadata } };
  return schemas.body(name, z.strictObject({ result }), example);
}

/** What optional fields of the body add to the envelope, beside `totals`. */
const optionsEnvelope = {
  row_count: count.optional().describe('With `limit`: how many rows there are without it.'),
  compare_to: z
    .strictObject({ start_time: date, end_time: date })
    .optional()
    .describe('With `compare_to`: the days that figures are compared with.'),
};

/** Two values of each text field of a row. */
const texts: Readonly<Record<string, readonly [string, string]>> = {
  campaign: ['Autumn sale', 'Winter boots'],
  ad_unit: ['Article top', 'Article sidebar'],
  device: ['desktop', 'mobile'],
  creative_headline: ['Free shipping until Sunday', 'New trails, new shoes'],
  creative_id: ['creative-1041', 'creative-1042'],
  site: ['The Daily Harbor', 'Harbor Weekend'],
} satisfies Readonly<Record<DimensionColumnId, readonly [string, string]>>;

const sums: Readonly<Record<Amount, number>> = {
  ad_requests: 51_900,
  impressions: 48_210,
  referrals: 1_203,
  conversions: 87,
  spend: 312.45,
  revenue: 164.208315,
};

const difference = (column: RowColumn) =>
  isCount(column)
    ? z.number().meta({ type: 'integer', examples: [-3] })
    : z.number().meta({ examples: [-0.75] });

function fieldOf(catalog: Catalog, column: RowColumn, breakdown: Breakdown): z.ZodType {
  const { id, type, source } = column;
  const field = (schema: z.ZodType, description: string, examples?: readonly unknown[]) =>
    schema.meta({ description, ...(examples && { examples: [...examples] }), 'x-column-type': type });
  const { measures } = familyOf(catalog, breakdown.family);
  const sumOf = (measure: string) => measures[measure] && sums[measures[measure].sumOf];
  switch (source.kind) {
    case 'range': {
      if (breakdown.day) return field(date, 'The day that the row covers.', ['2026-10-01']);
      return id === 'start_time'
        ? field(date, 'First day of the range, as asked for.', ['2026-10-01'])
        : field(date, 'Last day of the range, as asked for.', ['2026-10-31']);
    }
    case 'dimension': {
      const { key } = source.dimension;
      const { name } = source.column;
      const entity = key.replace(/_id$/, '');
      const what = entity.replaceAll('_', ' ');
      const otherwise = name?.otherwise === 'id' ? 'its id' : 'empty';
      return field(
        z.string(),
        name
          ? `The ${name.attribute} of the ${what}; ${otherwise} where none is known.`
          : `The ${what}${key === what ? '' : "'s id"}.`,
        texts[id] ?? [`${entity}-1`, `${entity}-2`],
      );
    }
    case 'load':
      return field(z.string(), loadTexts[source.column]);
    case 'measure': {
      const sum = sumOf(id);
      const examples = sum === undefined ? undefined : [sum];
      return type === 'Money'
        ? field(z.number(), 'Amount of money, exact, up to 6 places; corrections included.', examples)
        : field(count, `Number of ${id.replaceAll('_', ' ')}.`, examples);
    }
    case 'ratio': {
      const { numerator, denominator, times } = source;
      const factor = times === 1 ? '' : `${times} × `;
      const ratio = (times * (sumOf(numerator) ?? 0)) / (sumOf(denominator) ?? 0);
      return field(
        z.number(),
        `${factor}\`${numerator}\` / \`${denominator}\`, rounded to 6 places; 0 where \`${denominator}\` is 0.`,
        Number.isNaN(ratio) ? undefined : [Number(ratio.toFixed(6))],
      );
    }
    case 'change':
      return field(difference(column), `\`${source.now.id}\` less \`${source.before.id}\`.`);
  }
}
