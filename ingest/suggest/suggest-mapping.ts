import { countFields, type EventField, eventTypes, fieldSpecs, isEventField } from '../../catalog/events.ts';
import { parseExpression } from '../mapping/expression.ts';
import type { MappingText } from '../mapping/read-mapping.ts';
import type { Beginning, Layout } from './beginning.ts';
import { areFirstDays, dateShape, unknownDates } from './dates.ts';
import {
  columnsOf,
  fieldsByName,
  isLastDay,
  type KnownExport,
  ourNames,
  plainName,
  recognise,
} from './known-exports.ts';
import { areNumbers, type DecimalSign, decimalSignOf, type NumberShape, numberShape } from './numbers.ts';
import type { Shape } from './shape.ts';

export interface Suggestion {
  /** As a mapping file takes it. What nobody but a person can say is in `fill_in`: until then it is refused. */
  readonly mapping: MappingText;
  /** Why its members are as they are. */
  readonly reasons: readonly string[];
  /** Members of `fill_in` whose column is known: how its values are meant is not. */
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
  const draft = known ? fromExample(known, beginning) : fromColumns(fieldsByName(all), beginning);
  askForCurrencies(draft, beginning);
  readAsNamed(draft, beginning, named);
  const { fillIn, sources, others, reasons, doubtful } = draft;
  const members = { fill_in: fillIn, ...fieldsOf(sources) };
  const given = Object.entries(members).filter(([, member]) => Object.keys(member).length > 0);
  const { skip_lines, delimiter, header, records, encoding } = beginning.layout;
  const layout = [
    ...(skip_lines === undefined ? [] : [`skip_lines: the columns are named in line ${skip_lines + 1}`]),
    ...(delimiter === undefined
      ? []
      : [`delimiter: most lines have as many cells between ${JSON.stringify(delimiter)}`]),
    ...(header === undefined ? [] : ['header: no line names the columns, so they are called 1, 2, …']),
    ...(records === undefined ? [] : [`records: the array of records is in ${records}`]),
    ...(encoding === undefined ? [] : ['encoding: as --encoding says']),
  ];
  return { mapping: { ...others, ...Object.fromEntries(given) }, reasons: [...layout, ...reasons], doubtful };
}

/** What a field is read from: a column as it is, or an expression. */
type Source = { readonly column: string } | { readonly expression: string };

const textOf = (source: Source) => ('column' in source ? `{${source.column}}` : source.expression);

function fieldsOf(sources: Readonly<Record<string, Source>>) {
  const map: Record<string, string> = {};
  const expressions: Record<string, string> = {};
  for (const [field, source] of Object.entries(sources)) {
    if ('column' in source) map[field] = source.column;
    else expressions[field] = source.expression;
  }
  return { map, expressions };
}

/** Asks for amounts where a column names several currencies, and nothing chooses one. */
function askForCurrencies(draft: Draft, { columns }: Beginning): void {
  const { where } = draft.others;
  const used = columnsOf({ ...fieldsOf(draft.sources), ...(where !== undefined && { where }) });
  const currenciesIn = (column: string) =>
    [...new Set(draft.valuesOf(column))].filter((value) => isCurrency.test(value));
  const column = columns.find(
    (name) => currencyWords.test(name) && !used.includes(name) && currenciesIn(name).length > 1,
  );
  if (column === undefined) return;
  const [one, other] = currenciesIn(column);
  const choice = [...(where === undefined ? [] : [where]), `{${column}} = '${one}'`].join(' AND ');
  for (const field of ['spend', 'revenue'] as const) {
    const source = draft.sources[field];
    const read = source ? `in expressions ${textOf(source)}` : draft.fillIn[field];
    if (read === undefined) continue;
    draft.forget(field);
    draft.fillIn[field] =
      `${column} has several currencies, ${one} and ${other}, which no report tells apart: load one of them by a where such as ${choice}; ${read}`;
    if (source) draft.doubtful.push(field);
  }
}

/** Reads the columns that a person has named, as their values are written, whatever else was suggested for these fields. */
function readAsNamed(draft: Draft, { columns, rows }: Beginning, named: NamedColumns): void {
  for (const [field, column] of Object.entries(named) as [EventField, string][]) {
    const isKnown = isReadable(column) && rows.length > 0 && columns.includes(column);
    const shape = isKnown ? shapeOf(field, column, draft.valuesOf(column), decimalSignOf(rows)) : {};
    const { [field]: _, ...set } = draft.others.set ?? {};
    draft.others = { ...draft.others, set, ...(shape.dates && { dates: shape.dates }) };
    draft.doubtful = draft.doubtful.filter((each) => each !== field);
    delete draft.sources[field];
    delete draft.fillIn[field];
    if (shape.question === undefined || shape.asks !== undefined) draft.readBy(field, column, shape);
    else {
      draft.fillIn[field] = shape.question;
      draft.doubtful.push(field);
    }
  }
}

/** How the values of a column are read as a field. */
function shapeOf(
  field: EventField,
  column: string,
  values: readonly string[],
  sign: DecimalSign,
): Shape & NumberShape {
  const { kind } = fieldSpecs[field];
  if (field === 'event_time') return dateShape(column, values) ?? { question: unknownDates(column, values) };
  if (kind === 'type') return typeShape(column, values);
  if (kind !== 'count' && kind !== 'money') return {};
  // Money of our own names has a point, where nothing tells otherwise.
  const isOurs = kind === 'money' && ourNames.has(column) && !values.some((value) => value.includes(','));
  return numberShape(column, kind, values, isOurs ? (sign ?? '.') : sign);
}

/** Types of events by their own names, or a question. */
function typeShape(column: string, values: readonly string[]): Shape {
  const others = [...new Set(values)].filter((value) => !['', ...eventTypes].some((type) => type === value));
  if (others.length === 0) return {};
  const shown = others.slice(0, 5);
  return {
    question: `${quoted(shown)} in ${column} are no types of events: give an expression such as transform({${column}}, [${quoted(shown)}], [${shown.map(() => "'…'").join(', ')}], ''), with ${eventTypes.slice(0, -1).join(', ')} for the dots; a where leaves out the others`,
  };
}

/** The example itself, but for what is this file's own: how it is laid out, whose it is, and how days and numbers are written. */
function fromExample({ file, mapping }: KnownExport, beginning: Beginning): Draft {
  const { layout, columns, rows } = beginning;
  const { skip_lines: _, delimiter: __, set = {}, map = {}, expressions = {}, ...rest } = mapping;
  const asked = accounts.filter((account) => account in set);
  const constants = Object.entries(set).filter(([field]) => !asked.some((account) => account === field));
  const draft = new Draft(beginning);
  const { sources, fillIn, reasons } = draft;
  for (const [field, column] of Object.entries(map)) sources[field] = { column };
  for (const [field, expression] of Object.entries(expressions)) sources[field] = { expression };
  for (const account of asked) fillIn[account] = whichAccount;
  draft.others = {
    ...layout,
    ...(constants.length > 0 && { set: Object.fromEntries(constants) }),
    ...rest,
  };
  reasons.push(`the columns are those of examples/${file}; days and numbers are read as there`);
  const sign = decimalSignOf(rows);
  const texts = Object.entries(sources).map(([field, source]) => [field, textOf(source)] as const);
  const hasDecimalComma = texts.some(([, text]) => text.includes("',', '.'"));
  for (const [field, text] of texts) {
    const [column, ...others] = new Set(parseExpression(text).columns);
    if (!isEventField(field) || column === undefined || others.length > 0 || computes.test(text)) continue;
    const { kind } = fieldSpecs[field];
    // Records of totals have no day.
    const values = draft.valuesOf(column).filter((value) => kind !== 'time' || /\d/.test(value));
    if (values.length === 0) continue;
    const shape: Shape & NumberShape =
      kind === 'time' || kind === 'count' || kind === 'money' ? shapeOf(field, column, values, sign) : {};
    const { question, asks, reason, orZero } = shape;
    // The comma of an example says nothing of points between thousands.
    const hasPoint = values.some((value) => value.includes('.'));
    const isOther = kind === 'time' || (shape.decimalComma && (!hasDecimalComma || hasPoint));
    const isAsThere = question === undefined && ((shape.expression ?? `{${column}}`) === text || !isOther);
    if (isAsThere && orZero === undefined) continue;
    delete sources[field];
    if (question !== undefined) fillIn[asks ?? field] = question;
    if (question !== undefined && asks === undefined) draft.doubtful.push(field);
    else if (isAsThere && orZero !== undefined && text !== `round({${column}})`) {
      const around = (inner: string) => text.replaceAll(`{${column}}`, () => inner);
      const { expression = orZero } = shape;
      const isCovered = expression.startsWith('round(') || expression === around(orZero);
      sources[field] = { expression: around(isCovered ? orZero : expression) };
    } else draft.readBy(field, column, text.startsWith('round(') ? rounded(shape) : shape);
    reasons.push(`${field}: not as in the example${reason ? `, ${reason}` : ''}`);
  }
  const valuesOf = (column: string) => draft.valuesOf(column);
  const [, text = ''] = texts.find(([field]) => field === 'event_time') ?? [];
  const [day = ''] = parseExpression(text).columns;
  const days = valuesOf(day);
  const read = columnsOf(mapping);
  const end = columns.find(
    (column) => isLastDay(column) && !read.includes(column) && dateShape(column, valuesOf(column)),
  );
  const time = sources.event_time ? textOf(sources.event_time) : `{${day}}`;
  if (end === undefined) {
    if (fillIn.event_time !== undefined || !mayBeOfSeveralDays(day, days)) return draft;
    fillIn.event_time = whichDay(day, days);
  } else if (!valuesOf(end).every((value, n) => value === days[n] || !dateShape(end, [value])))
    fillIn.event_time = `${day} or ${end} may be event_time: ${wayOfDays([day, end], valuesOf)}`;
  delete sources.event_time;
  if (fillIn.event_time === undefined) {
    // A later record may span several days; it gets no time and is rejected.
    sources.event_time = { expression: `if({${day}} = {${end}}, ${time}, NULL)` };
    reasons.push(`event_time: not as in the example, where ${end} is the same day`);
  }
  return draft;
}

/** A number that the example rounds, also where no fraction is among the first. */
const rounded = ({ expression = '' }: Shape): Shape => ({
  expression: expression.startsWith('round(') ? expression : `round(toDecimal64OrNull(${expression}, 6))`,
});

/** How an event's time is read from one of these columns, as they are written. */
function wayOfDays(columns: readonly string[], valuesOf: (column: string) => readonly string[]): string {
  const ways = columns.map((column) => {
    const { expression, asks } = dateShape(column, valuesOf(column)) ?? {};
    return `${expression ?? `{${column}}`}${asks ? ' with --timezone' : ''}`;
  });
  return `in expressions ${ways.join(' or ')}`;
}

/** By its name and its values: its days are the first of several. */
const mayBeOfSeveralDays = (column: string, values: readonly string[]): boolean =>
  ofSeveralDays.test(column) || areFirstDays(values);

const whichDay = (column: string, values: readonly string[]): string =>
  `a record of ${column} may be of several days, and would count on the first: take the report by day. If each record is of one day, give it ${wayOfDays([column], () => values)}`;

/** An expression that does more than to read what is written. */
const computes = /[*/] \d|left\(/;

type FieldsByName = ReadonlyMap<string, ReadonlySet<EventField>>;

/** By the names of columns and by how the values of the first rows are written. */
function fromColumns(fields: FieldsByName, beginning: Beginning): Draft {
  const draft = new Draft(beginning);
  draft.readNamed(beginning.layout.header === false ? new Map() : fields);
  draft.readDays();
  draft.askForTheRest();
  draft.tellWhatIsLeft(beginning.layout);
  return draft;
}

/** Columns that may hold a count whose name nobody knows, in the languages in which platforms write most exports. */
const countWords: Readonly<Partial<Record<EventField, RegExp>>> = {
  ad_requests: /(?:request|attempt)s?$/i,
  impressions:
    /impr|^imps|shown|tracked ads|views?$|einblendung|affichage|gösterim|vertoning|visning|wyświetl|показ|展[现示]|曝光|表示回数|インプレ/i,
  referrals: /cli[ckq]|kli[ck]|^visits$|tıkla|клик|переход|点击|クリック/i,
  conversions:
    /[ck]onv|order|purchase|install|leads?$|verkäufe|bestellung|vente|compra|vendite|dönüşüm|конверс|转化|コンバージョン/i,
};
const moneyWords =
  /amount|cost|earn|income|price|revenu|sales|spen[dt]|ausgabe|ausgegeb|betrag|einnahme|kos[tz]|umsatz|coût|dépens|gasto|gastad|importe|ingreso|inversi|montant|ricav|spesa|speso|custos?(?![a-z])|valor (?:usado|gasto)|besteed|harca[mn]|maliyet|wydan|доход|затрат|потрач|расход|收入|消费|花费|消耗|費用|コスト|消化金額/i;
/** Names of columns whose days are the first of several, in the same languages. */
const ofSeveralDays =
  /week|month|quarter|woche|monat|quartal|semaine|\bmois\b|trimestre|semana|\bmes\b|settimana|\bmese\b|недел|месяц|[周週]|月(?!日)/i;
/** Names of columns that say in which currency the amounts are. */
const currencyWords = /currenc|währung|devise|divisa|moneda|valuta\b/i;
const isCurrency = /^(?:[A-Z]{3}|[A-Z]{0,2}\p{Sc})$/u;
const keyWords =
  /campa|kampa|кампан|计划|キャンペーン|placement|ad.?unit|ad.?tag|tag.?id|line.?item|order.?id/i;
/** Of columns with these words, those that are neither sums nor counts. */
const noSum =
  /цена|率|(?<!总)价|価|平均|每次|глубина|cost|kos[tz]|per\b|rate(?!d)|ratio|revenue|share|value|valor|date(?!d)|(?<!life)time|type/i;
const noMoney =
  /ecp[aceilmov]|^(?!.*(?:revenu|ingreso|umsatz)).*cp[aceilmov]|per\b|(?<!\bw)\/ ?(?:acti|acqu|cli[ckq]|[ck]on[vw]|day|impr|install|klick|lead|order|purchase|tag\b|view|visit)|rate(?!d)|rpm|average|avg|durchschn|^ø |médi[ao]|\bmedi[eo]\b|(?:spesa|inversión) media|moyen|\bgem\.|\bort\.|gns\.|genomsn|śr\.|ср\.|средн|цена|率|(?<!总)价|価|平均|每次|type/iu;
/** Names of amounts that are no sums of what was paid. */
const plannedWords = /bid|budget|price/i;
const holdsIds = (column: string): boolean => /(?<!pa|b|val|gr)id\W*$/i.test(column);

/** Whole cells that say that a record is a sum of others. */
const totalWords =
  /^(grand |sub-? ?)?totals?:?$|^(zwischen|gesamt)?summe:?$|^gesamt:?$|^(sous-)?total général:?$|^sous-total:?$|^(?:итого|всего|合计|总计|合計|totale|totaal|totais):?$/i;

/** An expression reads no column whose name would end the braces around it, but `{so}`. */
const isReadable = (column: string): boolean => /^(?:[^{}]*|\{[^{}]+\})$/.test(column);

function meantBy(fields: FieldsByName, column: string): EventField[] {
  return isEventField(column) ? [column] : [...(fields.get(plainName(column)) ?? [])];
}

const sumOf = (figure: readonly number[], rows: readonly number[]) =>
  rows.reduce((sum, row) => sum + (figure[row] ?? 0), 0);

/** To a cent a record, as amounts are rounded. */
const areSumsOf = (figures: readonly number[][], own: readonly number[], rows: readonly number[]) =>
  figures.every((figure) => Math.abs(sumOf(figure, own) - sumOf(figure, rows)) <= rows.length / 100);

const quoted = (texts: readonly string[]) =>
  texts.map((text) => `'${text.replace(/['\\]/g, '\\$&')}'`).join(', ');

/** Words in front of the number in a note such as `Total rows: 12`; takes no longer than the note is long. */
const beforeNumber = /^(?=[^\d\p{L}]*\p{L})\D*: *(?=\d)/u;

/** A suggestion while it is put together. */
class Draft {
  readonly #columns: readonly string[];
  readonly #all: readonly string[];
  readonly #rows: Beginning['rows'];
  readonly #notes: Beginning['notes'];
  readonly sources: Record<string, Source> = {};
  readonly fillIn: Record<string, string> = {};
  /** The other members of the mapping. */
  others: MappingText = {};
  reasons: string[] = [];
  doubtful: string[] = [];
  readonly #sign: DecimalSign;
  /** Columns that may be the time of the event. */
  #times: readonly string[] = [];
  /** Columns that are spend or revenue by their names. */
  #amounts: readonly string[] = [];

  constructor({ columns, rows, notes }: Beginning) {
    this.#columns = columns.filter(isReadable);
    this.#all = columns;
    this.#rows = rows;
    this.#notes = notes;
    this.#sign = decimalSignOf(rows);
  }

  /** Reads what columns are called. */
  readNamed(fields: FieldsByName): void {
    const sure = new Map<EventField, string[]>();
    const doubtful = new Map<EventField, string[]>();
    const whole = new Map(this.#columns.map((column) => [column, meantBy(fields, column)]));
    const known = new Set([...whole.values()].flat());
    for (const column of this.#columns) {
      const own = whole.get(column) ?? [];
      // A member of JSON by its last name, where no column has all of the name: `metrics.clicks`.
      const inner =
        /^\S+$/.test(column) && /.\../.test(column)
          ? meantBy(fields, column.slice(column.lastIndexOf('.') + 1))
          : [];
      const meant = own.length > 0 ? own : inner.filter((field) => !known.has(field));
      const found = meant.length === 1 ? sure : doubtful;
      for (const field of meant) found.set(field, [...(found.get(field) ?? []), column]);
    }
    this.#times = sure.get('event_time') ?? [];
    for (const [field, found] of sure) if (field !== 'event_time') this.#readOneOf(field, found);
    for (const [field, found] of doubtful) {
      const isAnyMoney = fieldSpecs[field].kind === 'money' && !sure.has('spend') && !sure.has('revenue');
      if (isAnyMoney) this.#amounts = found;
      else if (!sure.has(field)) this.#ask(field, found);
    }
  }

  #ask(field: EventField, columns: readonly string[]): void {
    this.fillIn[field] =
      `${columns.join(' or ')} may be ${field}: ${this.#way(field, columns)}, or take this line out`;
  }

  #readOneOf(field: EventField, found: readonly string[]): void {
    const own = found.filter((column) => column === field);
    const ids = field.endsWith('_id') ? found.filter(holdsIds) : [];
    const best = [own, ids, found].find(({ length }) => length > 0) ?? [];
    const [column] = best;
    if (column === undefined || best.length > 1) {
      this.fillIn[field] = `${best.join(' or ')} may be ${field}: ${this.#way(field, best)}`;
      return;
    }
    const shape = shapeOf(field, column, this.valuesOf(column), this.#sign);
    const units = fieldSpecs[field].kind === 'money' && !ourNames.has(column);
    this.#read(field, column, units ? { ...this.#unitQuestion(field, column, shape), ...shape } : shape);
  }

  /** Amounts without any places may be in cents, or in millionths, however few they are. */
  #unitQuestion(field: string, column: string, { expression, decimalComma, orZero }: NumberShape): Shape {
    if (expression !== undefined && !decimalComma && orZero === undefined) return {};
    const given = this.valuesOf(column).filter((value) => /[1-9]/.test(value));
    if (given.length === 0 || !given.every((value) => /^-?\d+$/.test(value))) return {};
    const asUnits = expression === undefined ? `--map ${field}=…` : `in expressions ${expression}`;
    const amount = expression === undefined ? `{${column}}` : `toDecimal64OrNull(${expression}, 6)`;
    return {
      question: `all of the first amounts in ${column} are whole numbers, such as ${given[0]}, which may be parts of a unit: ${asUnits} if they are units, as an expression ${amount} / 100 if they are cents, ${amount} / 1000000 if they are millionths`,
    };
  }

  /** Reads the day or time of the events, and what is no day as totals. */
  readDays(): void {
    const used = this.#used();
    const dated = this.#columns.filter(
      (column) => !used.has(column) && !holdsIds(column) && dateShape(column, this.valuesOf(column)),
    );
    const named = this.#times.includes('event_time')
      ? ['event_time']
      : [...new Set([...this.#times, ...dated.filter(isLastDay)])];
    const times = this.#times.length > 0 ? named : dated;
    const [day, end, ...more] = times;
    const values = day === undefined ? [] : this.valuesOf(day);
    const ends = end === undefined || more.length > 0 ? [] : this.valuesOf(end);
    // The first and the last day of each record. A later record may span several days; it gets no time and is rejected.
    const isSpan = ends.length > 0 && values.every((value, n) => value === ends[n] && !value.includes(':'));
    if (day === undefined || (this.#partsOfDay().includes(day) && !dateShape(day, values)))
      this.fillIn.event_time = this.#noDay();
    else if (end !== undefined && !isSpan)
      this.fillIn.event_time = `${times.join(' or ')} may be event_time: ${wayOfDays(times, (column) => this.valuesOf(column))}`;
    else if (!isSpan && mayBeOfSeveralDays(day, values)) this.fillIn.event_time = whichDay(day, values);
    else if (!this.#areSumsWithoutDay(values)) {
      this.fillIn.event_time = `${day} is blank in records that are no totals, and may be that of the record above: take the report with the day in each record. Read as they are (${wayOfDays([day], () => values)}), these records are rejected`;
      this.doubtful.push('event_time');
    } else {
      const shape = shapeOf('event_time', day, values, this.#sign);
      const whole = `if({${day}} = {${end}}, ${shape.expression ?? `{${day}}`}, NULL)`;
      const read = { ...shape, expression: whole, reason: `where ${end} is the same day` };
      this.#read('event_time', day, isSpan ? read : shape);
      const { others = [] } = dateShape(day, values) ?? {};
      // Lines with fewer cells than the header are left out by a condition on the first column alone.
      const notes =
        this.#all[0] === day ? this.#notes.filter((note) => note !== '' && !dateShape(day, [note])) : [];
      this.#leaveOutTotals(day, others, notes);
    }
  }

  /** Columns of the year, the month and the day of a date, or none. */
  #partsOfDay(): readonly string[] {
    for (const year of this.#columns.filter((column) => /year$/i.test(column))) {
      const parts = ['month', 'day'].map((part) =>
        this.#columns.find((column) => column.toLowerCase() === year.toLowerCase().replace(/year$/, part)),
      );
      const [month, day] = parts;
      if (month !== undefined && day !== undefined) return [year, month, day];
    }
    return [];
  }

  #noDay(): string {
    const [year, month, day] = this.#partsOfDay();
    return year === undefined
      ? "no column holds days or times: --map event_time=…, or in expressions, such as toDate(parseDateTimeOrNull({Day}, '%e %b %Y'))"
      : `${year}, ${month} and ${day} may be the day: in expressions {${year}} || '-' || leftPad({${month}}, 2, '0') || '-' || leftPad({${day}}, 2, '0')`;
  }

  /**
   * @param others values of the day that are no days
   * @param notes first cells of lines that are no records
   */
  #leaveOutTotals(day: string, others: readonly string[], notes: readonly string[]): void {
    const days = this.valuesOf(day);
    const conditions: string[] = [];
    let hasWords = false;
    for (const column of this.#columns) {
      const values = this.valuesOf(column);
      // Those that their day tells need no other column.
      const dated = new Set(values.filter((_, n) => !others.includes(days[n] ?? '')));
      const isTotal = (value: string) => totalWords.test(value);
      const told =
        column === day
          ? [...others, ...notes.filter((note) => !beforeNumber.test(note))]
          : // What all records have tells nothing.
            values.filter((value) => isTotal(value) && dated.has(value) && !values.every(isTotal));
      const texts = [...new Set(told)];
      if (texts.length === 0) continue;
      hasWords ||= column !== day;
      this.reasons.push(`where: records whose ${column} is ${quoted(texts)} are totals or notes`);
      conditions.push(`{${column}} NOT IN (${quoted(texts)})`);
    }
    // A number in a note is another one in the next file.
    for (const words of new Set(notes.flatMap((note) => beforeNumber.exec(note) ?? []))) {
      this.reasons.push(`where: lines that begin with ${quoted([words])} are notes`);
      conditions.push(`{${day}} NOT LIKE ${quoted([`${words.replace(/[%_\\]/g, '\\$&')}%`])}`);
    }
    const sums = hasWords ? undefined : this.#sums(day, others);
    if (sums) {
      const { column, sum } = sums;
      const all = [...conditions, `{${column}} NOT IN (${quoted([sum])})`];
      const kept = conditions.length > 0 ? conditions : [`{${day}} NOT IN ('')`];
      this.fillIn.where = `records whose ${column} is ${quoted([sum])} have each day the sums of all others: give where or --where, ${all.join(' AND ')} if they are totals, else ${kept.join(' AND ')}`;
      this.doubtful.push('where');
    } else if (conditions.length > 0) this.others = { ...this.others, where: conditions.join(' AND ') };
  }

  #hasCurrency(column: string): boolean {
    return this.valuesOf(column).some((value) => /\p{Sc}/u.test(value));
  }

  /** Columns that may hold a count by these words in their names. */
  #counts(words: RegExp): string[] {
    return this.#numbers(words).filter(
      (column) => !noSum.test(column) && !holdsIds(column) && !this.#hasCurrency(column),
    );
  }

  /** Numbers of columns that are known as counts, or may be counts or amounts by their names. */
  #figures(): number[][] {
    const known = [...countFields, 'spend', 'revenue'].flatMap((field) =>
      this.sources[field] ? columnsOf(fieldsOf({ source: this.sources[field] })) : [],
    );
    const amounts = this.#numbers(moneyWords).filter(
      (column) => !noMoney.test(column) && !plannedWords.test(column),
    );
    const between = this.#sign === undefined ? /[.,](?=\d{3}(?!\d))/g : this.#sign === ',' ? /\./g : /,/g;
    const numberOf = (text: string) =>
      Number(
        text
          .replace(between, '')
          .replace(',', '.')
          .replace(/[^\d.-]/g, ''),
      ) || 0;
    const numbersOf = (column: string) => this.valuesOf(column).map(numberOf);
    // A name says less than numbers: what has fractions may be a share.
    const counts = Object.entries(countWords)
      .filter(([field]) => !(field in this.sources))
      .flatMap(([, words]) => this.#counts(words))
      .filter((column) => numbersOf(column).every(Number.isInteger));
    return [...new Set([...known, ...this.#amounts, ...amounts, ...counts])].map(numbersOf);
  }

  /**
   * Whether records without a day are called totals, name nothing, count nothing, or have the sums of all others, or of those
   * directly above or below. The first records may be totals of all the file.
   */
  #areSumsWithoutDay(days: readonly string[]): boolean {
    const figures = this.#figures();
    const isName = (column: string) =>
      !areNumbers(this.valuesOf(column)) || holdsIds(column) || keyWords.test(column);
    const names = new Set<string | undefined>(this.#columns.filter(isName));
    const dated = [...days.keys()].filter((row) => days[row] !== '');
    const next = (row: number, step: 1 | -1) => {
      const found: number[] = [];
      let at = row;
      while (days[at] === '') at += step;
      for (; days[at]; at += step) found.push(at);
      return found;
    };
    return [...days.keys()].every((row) => {
      const cells = this.#rows[row] ?? [];
      const isTotal =
        days[row] !== '' ||
        row < (dated[0] ?? 0) ||
        cells.some((cell) => totalWords.test(cell)) ||
        cells.every((cell, n) => !names.has(this.#all[n]) || !/[\p{L}\p{N}]/u.test(cell));
      const others = figures.length > 0 ? [[], dated, next(row, -1), next(row, 1)] : [];
      return isTotal || others.some((of) => areSumsOf(figures, [row], of));
    });
  }

  /**
   * The column, preferably of the key, in which the records of one text have the sums of all other records, on each day and in
   * each figure. The others must be more.
   * @param noDays values of the day that are none
   */
  #sums(
    day: string,
    noDays: readonly string[],
  ): { readonly column: string; readonly sum: string } | undefined {
    const days = this.valuesOf(day);
    // The last day may go on behind the first records.
    const end = days.at(-1) === days[0] ? undefined : days.at(-1);
    const groups = [...new Set(days)]
      .filter((date) => date !== end && !noDays.includes(date))
      .map((date) => [...days.keys()].filter((row) => days[row] === date));
    // A file may have hundreds, which say no more and take long.
    const figures = this.#figures().slice(0, 20);
    const isSum = (texts: readonly string[], text: string) => {
      const isOwn = (row: number) => texts[row] === text;
      if (texts.filter((each) => each === text).length * 2 >= texts.length) return false;
      const split = groups.map((rows) => [rows.filter(isOwn), rows.filter((row) => !isOwn(row))] as const);
      if (!split.every(([own, rest]) => areSumsOf(figures, own, rest))) return false;
      // Small ones may be alike by chance.
      return split.some(([own]) => figures.some((figure) => sumOf(figure, own) > 9));
    };
    const found = this.#columns.flatMap((column) => {
      const texts = this.valuesOf(column);
      // Numbers and shares of a sum are others in the next file.
      const isName = texts.filter((text) => /\d/.test(text)).length * 2 < texts.length;
      if (!isName && !holdsIds(column) && !keyWords.test(column)) return [];
      const sum = [...new Set(texts)].find((text) => isSum(texts, text));
      const rank = (keyWords.test(column) ? 0 : 1) + (sum === '' ? 2 : 0);
      return sum === undefined ? [] : [{ rank, column, sum }];
    });
    return found.sort((a, b) => a.rank - b.rank)[0];
  }

  /** Asks for what an event needs and no column is known for, and for amounts. */
  askForTheRest(): void {
    const hasSite = this.#has('publisher_id') || this.#has('ad_unit_id');
    const counted = new Set<string>();
    for (const [field, words] of Object.entries(countWords) as [EventField, RegExp][]) {
      if (this.#has(field) || (field === 'ad_requests' && !hasSite)) continue;
      const columns = this.#counts(words);
      // A total of orders or sales may be an amount.
      if (field !== 'conversions') for (const column of columns) counted.add(column);
      if (columns.length > 0) this.#ask(field, columns);
    }
    if (!['event_type', ...countFields].some((field) => this.#has(field)))
      this.fillIn.impressions =
        'no column is known as a count: give one by --map, or --set impressions=1 where each record is one';
    const numbers = this.#numbers(/./).filter((column) => !noMoney.test(column) && !holdsIds(column));
    const isTotal = (column: string) => /total/i.test(column) && !counted.has(column);
    const others = numbers.filter(
      (column) => isTotal(column) || (this.#hasCurrency(column) && !plannedWords.test(column)),
    );
    // How they are read is shown of the first, which is the likeliest.
    const amounts = [
      ...new Set([...this.#amounts, ...numbers.filter((column) => moneyWords.test(column)), ...others]),
    ];
    const isSold = hasSite && !this.#has('advertiser_id') && !this.#has('campaign_id');
    const [money, what, other] = isSold
      ? (['revenue', 'revenue', ','] as const)
      : (['spend', 'spend, revenue or neither', '; or the same of revenue with --set spend=;'] as const);
    if (amounts.length > 0 && !this.#has('spend') && !this.#has('revenue'))
      this.fillIn[money] =
        `${amounts.join(' or ')} may be ${what}: ${this.#way(money, amounts)}${other} or take this line out`;
    const { revenue } = this.sources;
    if (revenue !== undefined && !this.#has('ad_unit_id')) {
      this.forget('revenue');
      this.fillIn.revenue = `${'column' in revenue ? revenue.column : revenue.expression} may be what an advertiser pays, which is spend: --map revenue=…; or take this line out and read it as spend, with --set revenue=`;
    }
    this.#askForSides();
  }

  /** Asks for whose events they are. What is read beside an account that is not there would be rejected. */
  #askForSides(): void {
    const isPublisher = this.#has('publisher_id') || this.#has('ad_unit_id');
    const isAdvertiser = this.#has('advertiser_id') || this.#has('campaign_id');
    if (!isPublisher) this.forget('site_id');
    if (isPublisher && !isAdvertiser) this.forget('creative_id');
    if (isPublisher && !this.#has('ad_unit_id'))
      this.fillIn.ad_unit_id = `${this.#keys('no column is known to hold the ad unit beside publisher_id')}: --map ad_unit_id=…; or take this line out, and the publisher with --set publisher_id= --set site_id=`;
    if (isAdvertiser && isPublisher && !this.#has('campaign_id'))
      this.fillIn.campaign_id = `${this.#keys()}: --map campaign_id=…; or take this line out, and the advertiser with --set advertiser_id= --set creative_id=`;
    if (!isPublisher && !this.#has('campaign_id'))
      this.fillIn.campaign_id = `${this.#keys()}: --map campaign_id=…; or take this line out, and give --map ad_unit_id=… --set creative_id=`;
    const account = isPublisher ? 'publisher_id' : 'advertiser_id';
    if (!this.#has(account)) this.fillIn[account] = whichAccount;
  }

  forget(field: EventField): void {
    for (const fields of [this.sources, this.fillIn]) delete fields[field];
    this.reasons = this.reasons.filter((reason) => !reason.startsWith(`${field}: `));
  }

  /** Columns of numbers that nothing is read from yet, by words in their names. */
  #numbers(words: RegExp): string[] {
    const used = this.#used();
    return this.#columns.filter(
      (column) => !used.has(column) && words.test(column) && areNumbers(this.valuesOf(column)),
    );
  }

  /** What may be a campaign or an ad unit. */
  #keys(none = 'no column is known to hold ids of campaigns or ad units'): string {
    const used = this.#used();
    const columns = this.#columns.filter((column) => !used.has(column) && keyWords.test(column));
    return columns.length > 0 ? `${columns.join(' or ')} may be a campaign or an ad unit` : none;
  }

  /** How a field is read from one of these columns, as they are written. */
  #way(field: EventField, columns: readonly string[]): string {
    const [column = ''] = columns;
    const { kind } = fieldSpecs[field];
    const map = `--map ${field}=…`;
    if (kind !== 'count' && kind !== 'money') return map;
    const shape = numberShape(column, kind, this.valuesOf(column), this.#sign);
    const units = kind === 'money' ? this.#unitQuestion(field, column, shape) : {};
    const question = shape.question ?? units.question;
    if (question !== undefined) return question;
    return shape.expression === undefined ? map : `in expressions ${shape.expression}`;
  }

  tellWhatIsLeft(layout: Layout): void {
    const used = this.#used();
    const left = this.#all.filter((column) => column !== '' && !used.has(column));
    if (left.length > 0) this.reasons.push(`ignore_unknown: nothing is read from ${left.join(', ')}`);
    this.others = { ...layout, ...this.others, ignore_unknown: true };
  }

  #read(field: EventField, column: string, shape: Shape): void {
    const { reason, question, asks = field, dates } = shape;
    if (dates) this.others = { ...this.others, dates };
    if (question !== undefined) this.fillIn[asks] = question;
    if (question !== undefined && asks === field) {
      this.doubtful.push(field);
      return;
    }
    this.readBy(field, column, shape);
    this.reasons.push(`${field}: ${column}${reason ? `, ${reason}` : ''}`);
  }

  readBy(field: EventField, column: string, { expression }: Shape): void {
    this.sources[field] = expression === undefined ? { column } : { expression };
  }

  valuesOf(column: string): string[] {
    const at = this.#all.indexOf(column);
    return this.#rows.map((row) => row[at] ?? '');
  }

  #has(field: string): boolean {
    return field in this.sources || field in this.fillIn;
  }

  #used(): ReadonlySet<string> {
    return new Set(columnsOf(fieldsOf(this.sources)));
  }
}
