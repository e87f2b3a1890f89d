import { countFields, type EventField, fieldSpecs, isEventField } from '../../catalog/events.ts';
import { parseExpression } from '../mapping/expression.ts';
import type { Beginning, Layout } from './beginning.ts';
import { fieldsByName, type KnownExport, type MappingText, plainName, recognise } from './known-exports.ts';
import { areNumbers, dateShape, numberShape, type Shape, unknownDates } from './shapes.ts';

export interface Suggestion {
  /** As a mapping file takes it. What nobody but a person can say is in `fill_in`: until then it is refused. */
  readonly mapping: MappingText & { readonly fill_in?: Readonly<Record<string, string>> };
  /** Why its members are as they are. */
  readonly reasons: readonly string[];
  /** Fields of `fill_in` whose column is known: how its values are meant is not. */
  readonly doubtful: readonly string[];
}

/** Columns that a person has named, by their fields. */
export type NamedColumns = Readonly<Partial<Record<EventField, string>>>;

const accounts = ['advertiser_id', 'publisher_id'] as const;
const whichAccount = 'no column names the account: give it by --set';

/** The mapping of a known export whose columns the file has, else one that is put together from the file's first rows. */
export function suggestMapping(
  all: readonly KnownExport[],
  beginning: Beginning,
  named: NamedColumns = {},
): Suggestion {
  const known = recognise(all, beginning);
  const { mapping, reasons, doubtful } = withNamed(
    known ? fromExample(known, beginning) : fromColumns(fieldsByName(all), beginning),
    beginning,
    named,
  );
  const { skip_lines, delimiter, header, records, encoding } = beginning.layout;
  const layout = [
    ...(skip_lines === undefined ? [] : [`skip_lines: the columns are named in line ${skip_lines + 1}`]),
    ...(delimiter === undefined
      ? []
      : [`delimiter: most lines have as many cells between ${JSON.stringify(delimiter)}`]),
    ...(header === undefined ? [] : ['header: the first line names no columns, so they are called 1, 2, …']),
    ...(records === undefined ? [] : [`records: the array of records is in ${records}`]),
    ...(encoding === undefined ? [] : ['encoding: as --encoding says']),
  ];
  return { mapping, reasons: [...layout, ...reasons], doubtful };
}

/** Reads the columns that a person has named, as their values are written, whatever else was suggested for these fields. */
function withNamed(suggestion: Suggestion, { columns, rows }: Beginning, named: NamedColumns): Suggestion {
  if (Object.keys(named).length === 0) return suggestion;
  const { mapping, reasons, doubtful } = suggestion;
  const others = <Value>(fields: Readonly<Record<string, Value>> = {}) =>
    Object.fromEntries(Object.entries(fields).filter(([field]) => !Object.hasOwn(named, field)));
  const map: Record<string, string> = others(mapping.map);
  const expressions: Record<string, string> = others(mapping.expressions);
  const fill_in: Record<string, string> = others(mapping.fill_in);
  const asked: string[] = [];
  let { dates } = mapping;
  for (const [field, column] of Object.entries(named) as [EventField, string][]) {
    const at = isReadable(column) && rows.length > 0 ? columns.indexOf(column) : -1;
    const values = rows.map((row) => row[at] ?? '');
    const shape = at < 0 ? {} : shapeOf(field, column, values);
    dates = shape.dates ?? dates;
    if (shape.question !== undefined && shape.asks === undefined) {
      fill_in[field] = shape.question;
      asked.push(field);
    } else if (shape.expression === undefined) map[field] = column;
    else expressions[field] = shape.expression;
  }
  return {
    mapping: { ...mapping, map, set: others(mapping.set), expressions, fill_in, ...(dates ? { dates } : {}) },
    reasons,
    doubtful: [...doubtful.filter((field) => !Object.hasOwn(named, field)), ...asked],
  };
}

/** How the values of a column are read as a field. */
function shapeOf(field: EventField, column: string, values: readonly string[]): Shape {
  const { kind } = fieldSpecs[field];
  if (field === 'event_time') return dateShape(column, values) ?? { question: unknownDates(column, values) };
  return kind === 'count' || kind === 'money' ? numberShape(column, kind, values) : {};
}

/** The example itself, but for what is this file's own: how it is laid out, whose it is, and in which order days are written. */
function fromExample({ file, mapping }: KnownExport, { layout, columns, rows }: Beginning): Suggestion {
  const { skip_lines: _, delimiter: __, set = {}, expressions, ...rest } = mapping;
  const asked = accounts.filter((account) => account in set);
  const constants = Object.entries(set).filter(([field]) => !asked.some((account) => account === field));
  const { event_time: day, ...others } = expressions ?? {};
  const [column = ''] = day !== undefined && dayBesideMonth.test(day) ? parseExpression(day).columns : [];
  // Where a person lives decides it, not the platform.
  const shape = dateShape(
    column,
    rows.map((row) => row[columns.indexOf(column)] ?? ''),
  );
  const read = { ...(day !== undefined && { event_time: shape?.expression ?? day }), ...others };
  const open = {
    ...Object.fromEntries(asked.map((account) => [account, whichAccount])),
    ...(shape?.question !== undefined && { event_time: shape.question }),
  };
  return {
    mapping: {
      ...layout,
      ...(Object.keys(open).length > 0 && { fill_in: open }),
      ...(constants.length > 0 && { set: Object.fromEntries(constants) }),
      ...rest,
      ...(expressions && { expressions: shape?.question === undefined ? read : others }),
    },
    reasons: [`the columns are those of examples/${file}; days and numbers are read as there`],
    doubtful: shape?.question === undefined ? [] : ['event_time'],
  };
}

/** An expression that reads a day and a month as numbers beside each other. */
const dayBesideMonth = /%[cm][/-]%[de]|%[de][/-]%[cm]/;

type FieldsByName = ReadonlyMap<string, ReadonlySet<EventField>>;

/** By the names of columns and by how the values of the first rows are written. */
function fromColumns(fields: FieldsByName, beginning: Beginning): Suggestion {
  const draft = new Draft(beginning);
  draft.readNamed(beginning.layout.header === false ? new Map() : fields);
  draft.readDays();
  draft.askForTheRest();
  return draft.suggestion(beginning.layout);
}

/** Columns that may hold a count whose name nobody knows. */
const countWords: Readonly<Partial<Record<EventField, RegExp>>> = {
  impressions: /impr|^imps|shown|views?$/i,
  referrals: /click|^visits$/i,
  conversions: /conv|order|purchase|install|leads?$/i,
};

/** An expression reads no column whose name would end the braces around it. */
const isReadable = (column: string): boolean => !/[{}]/.test(column);

class Draft {
  readonly #columns: readonly string[];
  readonly #all: readonly string[];
  readonly #rows: Beginning['rows'];
  readonly #map: Record<string, string> = {};
  readonly #expressions: Record<string, string> = {};
  readonly #fillIn: Record<string, string> = {};
  readonly #others: Record<string, string> = {};
  readonly #reasons: string[] = [];
  readonly #doubtful: string[] = [];
  /** Columns that may be the time of the event. */
  #times: readonly string[] = [];

  constructor({ columns, rows }: Beginning) {
    this.#columns = columns.filter(isReadable);
    this.#all = columns;
    this.#rows = rows;
  }

  /** Reads what columns are called. */
  readNamed(fields: FieldsByName): void {
    const candidates = new Map<EventField, string[]>();
    for (const column of this.#columns) {
      const meant = isEventField(column) ? [column] : [...(fields.get(plainName(column)) ?? [])];
      if (meant.length === 1)
        for (const field of meant) candidates.set(field, [...(candidates.get(field) ?? []), column]);
      else
        for (const field of meant)
          this.#fillIn[field] =
            `${column} may be ${meant.join(' or ')}: --map ${field}=…, or take this line out`;
    }
    this.#times = candidates.get('event_time') ?? [];
    for (const [field, found] of candidates)
      if (field !== 'event_time' && !this.#has(field)) this.#readOneOf(field, found);
  }

  #readOneOf(field: EventField, found: readonly string[]): void {
    const own = found.filter((column) => column === field);
    const ids = field.endsWith('_id') ? found.filter((column) => /id$/i.test(column)) : [];
    const best = [own, ids, found].find(({ length }) => length > 0) ?? [];
    const [column] = best;
    if (column === undefined || best.length > 1) {
      this.#fillIn[field] = `${best.join(' or ')} may be ${field}: give the column by --map`;
      return;
    }
    this.#read(field, column, shapeOf(field, column, this.#valuesOf(column)));
  }

  /** Reads the day or time of the events, and what is no day as totals. */
  readDays(): void {
    const used = this.#used();
    const dated = this.#columns.filter(
      (column) => !used.has(column) && dateShape(column, this.#valuesOf(column)),
    );
    const times = this.#times.length > 0 ? this.#times : dated;
    const [day, end, ...more] = times;
    const values = day === undefined ? [] : this.#valuesOf(day);
    const ends = end === undefined || more.length > 0 ? [] : this.#valuesOf(end);
    // The first and the last day of each record. A later record may span several days; it gets no time and is rejected.
    const isSpan = ends.length > 0 && values.every((value, n) => value === ends[n] && !value.includes(':'));
    if (day === undefined) this.#fillIn.event_time = 'no column holds days or times: give one by --map';
    else if (end !== undefined && !isSpan)
      this.#fillIn.event_time = `${times.join(' or ')} may be event_time: give the column by --map`;
    else {
      const shape = shapeOf('event_time', day, values);
      const whole = `if({${day}} = {${end}}, ${shape.expression ?? `{${day}}`}, NULL)`;
      const read = { ...shape, expression: whole, reason: `where ${end} is the same day` };
      this.#read('event_time', day, isSpan ? read : shape);
      const { others = [] } = dateShape(day, values) ?? {};
      if (others.length === 0) return;
      const texts = others.map((text) => `'${text.replace(/['\\]/g, '\\$&')}'`).join(', ');
      this.#others.where = `{${day}} NOT IN (${texts})`;
      this.#reasons.push(`where: records whose ${day} is ${texts} are totals`);
    }
  }

  /** Asks for what an event needs and no column is known for, and for amounts. */
  askForTheRest(): void {
    const counts = Object.entries(countWords).filter(([field]) => !this.#has(field));
    for (const [field, words] of counts) {
      const columns = this.#numbers(words).filter(
        (column) => !/cost|per\b|rate|ratio|revenue|share|value/i.test(column),
      );
      if (columns.length > 0)
        this.#fillIn[field] =
          `${columns.join(' or ')} may be ${field}: ${this.#way(field, columns)}, or take this line out`;
    }
    if (!['event_type', ...countFields].some((field) => this.#has(field)))
      this.#fillIn.impressions =
        'no column is known as a count: give one by --map, or --set impressions=1 where each record is one';
    const amounts = this.#numbers(/amount|cost|earn|income|price|revenue|sales|spen[dt]|total/i);
    if (amounts.length > 0 && !this.#has('spend') && !this.#has('revenue'))
      this.#fillIn.spend = `${amounts.join(' or ')} may be spend, revenue or neither: ${this.#way('spend', amounts)}, or take this line out`;
    const revenue = this.#map.revenue ?? this.#expressions.revenue;
    if (revenue !== undefined && !this.#has('ad_unit_id')) {
      delete this.#map.revenue;
      delete this.#expressions.revenue;
      this.#fillIn.revenue = `${revenue} may be what an advertiser pays, which is spend: --map revenue=…; or take this line out and read it as spend, with --set revenue=`;
    }
    const isPublisher = this.#has('ad_unit_id');
    if (!isPublisher && !this.#has('campaign_id'))
      this.#fillIn.campaign_id = 'no column is known to hold ids of campaigns or ad units: give one by --map';
    if (!isPublisher && this.#has('publisher_id'))
      this.#fillIn.ad_unit_id =
        'no column is known to hold the ad unit beside publisher_id: --map ad_unit_id=…; or take this line out, and the publisher with --set publisher_id=';
    const account = isPublisher ? 'publisher_id' : 'advertiser_id';
    if (!this.#has(account)) this.#fillIn[account] = whichAccount;
  }

  /** Columns of numbers that nothing is read from yet, by words in their names. */
  #numbers(words: RegExp): string[] {
    const used = this.#used();
    return this.#columns.filter(
      (column) => !used.has(column) && words.test(column) && areNumbers(this.#valuesOf(column)),
    );
  }

  /** How a field is read from one of these columns, as they are written. */
  #way(field: string, columns: readonly string[]): string {
    const [column = ''] = columns;
    const kind = field === 'spend' ? 'money' : 'count';
    const { expression } = numberShape(column, kind, this.#valuesOf(column));
    return expression === undefined ? `--map ${field}=…` : `in expressions ${expression}`;
  }

  suggestion(layout: Layout): Suggestion {
    const used = this.#used();
    const left = this.#all.filter((column) => column !== '' && !used.has(column));
    const members = { fill_in: this.#fillIn, map: this.#map, expressions: this.#expressions };
    return {
      mapping: {
        ...layout,
        ...this.#others,
        ...Object.fromEntries(Object.entries(members).filter(([, member]) => Object.keys(member).length > 0)),
        ignore_unknown: true,
      },
      reasons: [
        ...this.#reasons,
        ...(left.length > 0 ? [`ignore_unknown: nothing is read from ${left.join(', ')}`] : []),
      ],
      doubtful: this.#doubtful,
    };
  }

  #read(field: EventField, column: string, shape: Shape): void {
    const { expression, reason, question, asks = field, dates } = shape;
    if (dates) this.#others.dates = dates;
    if (question !== undefined) this.#fillIn[asks] = question;
    if (question !== undefined && asks === field) {
      this.#doubtful.push(field);
      return;
    }
    if (expression === undefined) this.#map[field] = column;
    else this.#expressions[field] = expression;
    this.#reasons.push(`${field}: ${column}${reason ? `, ${reason}` : ''}`);
  }

  #valuesOf(column: string): string[] {
    const at = this.#all.indexOf(column);
    return this.#rows.map((row) => row[at] ?? '');
  }

  #has(field: string): boolean {
    return [this.#map, this.#expressions, this.#fillIn].some((fields) => field in fields);
  }

  #used(): ReadonlySet<string> {
    const inExpressions = Object.values(this.#expressions).flatMap((text) => parseExpression(text).columns);
    return new Set([...Object.values(this.#map), ...inExpressions]);
  }
}
