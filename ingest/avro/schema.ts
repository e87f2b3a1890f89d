import * as z from 'zod';
import { mostBytes, type SchemaColumn, type TypedColumn } from '../event/typed-columns.ts';
import { InputError } from '../input/input-error.ts';
import { shownName } from '../input/similar-names.ts';

/** Of Avro's specification, what decides how a column is read. */
type AvroType = string | AvroType[] | AvroObject;

const plainMembers = z.object({
  logicalType: z.string().optional(),
  name: z.string().optional(),
  namespace: z.string().optional(),
  precision: z.number().optional(),
  scale: z.number().optional(),
  size: z.number().optional(),
});
interface AvroObject extends z.infer<typeof plainMembers> {
  readonly type: AvroType;
  readonly items?: AvroType | undefined;
  readonly values?: AvroType | undefined;
  readonly fields?: { readonly name: string; readonly type: AvroType }[] | undefined;
}

const avroType: z.ZodType<AvroType> = z.lazy(() =>
  z.union([
    z.string(),
    z.array(avroType),
    z.preprocess(
      withoutForeign,
      plainMembers.extend({
        type: avroType,
        items: avroType.optional(),
        values: avroType.optional(),
        fields: z.array(z.object({ name: z.string(), type: avroType })).optional(),
      }),
    ),
  ]),
);

/** Of any other type than an array or a map these members are notes of the writer. */
function withoutForeign(given: unknown): unknown {
  if (typeof given !== 'object' || given === null || !('type' in given)) return given;
  const items = given.type === 'array' && 'items' in given ? given.items : undefined;
  const values = given.type === 'map' && 'values' in given ? given.values : undefined;
  return { ...given, items, values };
}

/** A schema of some megabytes would take seconds and gigabytes. */
const mostSchemaCharacters = 1 << 20;

/**
 * The schema as it is looked at and as ClickHouse has to get it: of two members of one name ClickHouse takes the first,
 * JSON.parse the last.
 * @throws {InputError} for what is no JSON, or too much of it
 */
export function ownSchema(file: string, schema: string): string {
  if (schema.length > mostSchemaCharacters)
    throw new InputError(
      `${file}: the schema in its header has over ${mostSchemaCharacters} characters, which cannot be read`,
    );
  try {
    return JSON.stringify(JSON.parse(schema));
  } catch (cause) {
    throw new InputError(`${file}: the schema in its header is no Avro schema`, { cause });
  }
}

/**
 * The fields of the records that a schema describes. What ClickHouse never comes to the end of, or falls over, is refused
 * also where no event needs it, because it reads over such a field entry by entry.
 * @throws {InputError} for a schema that describes no records, and for such a field
 */
export function avroFields(file: string, schema: string): SchemaColumn[] {
  const named = new Named();
  try {
    const root = avroType.parse(JSON.parse(schema));
    if (isRecord(root)) return fieldsOf(root, named, '', '');
  } catch (cause) {
    if (cause instanceof InputError) throw new InputError(`${file}: ${cause.message}`, { cause });
    const what = named.walked > mostFields ? `has over ${mostFields} fields` : 'is no Avro schema';
    throw new InputError(`${file}: the schema in its header ${what}`, { cause });
  }
  throw new InputError(`${file}: its values are not records, so they have no columns; write records`);
}

/** Those of errors, in the protocols of Avro, are records, too. */
const isRecord = (type: AvroType): type is AvroObject =>
  typeof type === 'object' && !Array.isArray(type) && isRecordType(type.type);
const isRecordType = (type: AvroType) => type === 'record' || type === 'error';

/** A name of any other type is none. */
const isNamed = ({ type }: AvroObject) => isRecordType(type) || type === 'enum' || type === 'fixed';

/** Types by their full names, in the order in which the schema names them. */
class Named extends Map<string, AvroObject> {
  /** Fields until now. Records that each name the next one twice have any number of them. */
  walked = 0;
  /** Types until now. A union in a record is read again wherever the record is named. */
  types = 0;
}

const mostFields = 20_000;
/** More than a schema can have that names no record twice. */
const mostTypes = 200_000;

/** Stands for a record as long as its own fields are read. */
const itself: AvroObject = { type: 'itself' };

function fieldsOf(record: AvroObject, named: Named, space: string, path: string): SchemaColumn[] {
  const own = define(record, named, space);
  const inner = own.name.slice(0, Math.max(0, own.name.lastIndexOf('.')));
  named.set(own.name, itself);
  const columns = (record.fields ?? []).flatMap(({ name, type }) => {
    if (++named.walked > mostFields) throw new Error('too many fields');
    const found = resolved(type, named, inner);
    if (isRecord(found)) return fieldsOf(found, named, inner, `${path}${name}.`);
    return [{ name: path + name, ...readingOf(found, named, inner, path + name) }];
  });
  named.set(own.name, own);
  return columns;
}

/** Notes a named type, and returns it under its full name, which is the same in every namespace. */
function define(type: AvroObject, named: Named, space: string): AvroObject & { readonly name: string } {
  const own = { ...type, name: fullName(type.name ?? '', type.namespace ?? space), namespace: '' };
  named.set(own.name, own);
  return own;
}

const fullName = (name: string, space: string) => (name.includes('.') || !space ? name : `${space}.${name}`);

/**
 * What a name stands for; any other type as it is. Null is none, whatever else is called so. Of two definitions of a name
 * ClickHouse takes now one, now the other.
 * @throws {InputError} for a second one that differs
 */
function resolved(type: AvroType, named: Named, space: string): AvroType {
  if (typeof type === 'string')
    return type === 'null' ? type : (named.get(fullName(type, space)) ?? named.get(type) ?? type);
  if (Array.isArray(type) || !isNamed(type)) return type;
  const name = fullName(type.name ?? '', type.namespace ?? space);
  const known = named.get(name);
  if (known && known !== itself && JSON.stringify({ ...type, name, namespace: '' }) !== JSON.stringify(known))
    throw new InputError(`the schema in its header defines ${shownName(name)} twice, and not alike`);
  return known ?? type;
}

const alwaysNull = 'always null';

const unreadable = (called: string) => ({ read: undefined, called });

/** @param column what it is in, for messages */
function readingOf(given: AvroType, named: Named, space: string, column: string): Omit<SchemaColumn, 'name'> {
  if (++named.types > mostTypes) throw new InputError(`the schema in its header has over ${mostTypes} types`);
  const type = resolved(given, named, space);
  // A kilobyte holds a million of them, one in the other, which is more than the stack of ClickHouse holds.
  if (type === itself) throw refused(column, 'a record within itself');
  if (Array.isArray(type)) {
    const readings = type
      .filter((each) => each !== 'null')
      .map((each) => readingOf(each, named, space, column));
    const [only, ...others] = readings;
    // Unlike null, each of these takes a byte.
    if (!only || only.called === alwaysNull) return unreadable('a union of null');
    if (others.length > 0) return unreadable(`a union of ${readings.map(({ called }) => called).join(', ')}`);
    if (!only.read || readings.length === type.length) return only;
    return { ...only, read: { ...only.read, type: `Nullable(${only.read.type})` } };
  }
  if (typeof type === 'string') return plain(type, undefined);
  if (typeof type.type !== 'string') return readingOf(type.type, named, space, column);
  if (isNamed(type)) define(type, named, space);
  if (isRecordType(type.type)) {
    // What is defined in it may be named behind it.
    fieldsOf(type, named, space, `${column}.`);
    return unreadable('a record that may be null');
  }
  for (const inner of [type.items, type.values]) {
    if (inner === undefined) continue;
    const found = resolved(inner, named, space);
    const within = isRecord(found)
      ? fieldsOf(found, named, space, `${column}.`)
      : [readingOf(found, named, space, column)];
    if (inner === type.items && within.every(({ called }) => called === alwaysNull))
      throw refused(column, 'an array whose entries take no bytes, so that it may have any number of them');
  }
  return plain(type.type, type);
}

const refused = (column: string, what: string) =>
  new InputError(
    `column ${shownName(column)} is ${what}; write it as plain values of one type, or leave it out`,
  );

const times: ReadonlyMap<string, number> = new Map([
  ['millis', 3],
  ['micros', 6],
  ['nanos', 9],
]);

function plain(name: string, type: AvroObject | undefined): Omit<SchemaColumn, 'name'> {
  const read = (as: string, kind?: TypedColumn['kind']) => ({ read: { type: as, kind }, called: name });
  const { logicalType = '', precision = 0, scale = 0, size = 0 } = type ?? {};
  switch (name) {
    case 'boolean':
      return read('Bool', 'truth');
    case 'int':
      // As text, so that --timezone holds for it.
      return logicalType === 'date' ? read('Date32') : read('Int64', 'whole');
    case 'long': {
      const places = times.get(logicalType.replace(/^(local-)?timestamp-/, ''));
      if (places === undefined) return read('Int64', 'whole');
      return read(`DateTime64(${places}, 'UTC')`, logicalType.startsWith('local-') ? undefined : 'time');
    }
    case 'float':
      return read('Float32');
    case 'double':
      return read('Float64');
    case 'bytes':
    case 'fixed': {
      if (logicalType !== 'decimal') return read('String');
      if (precision > 76) return unreadable('a decimal of over 76 digits');
      if (![precision, scale].every(Number.isInteger) || precision < 1 || scale < 0 || scale > precision) {
        return unreadable(`a decimal of precision ${precision} and scale ${scale}`);
      }
      const fitting = mostBytes(precision);
      if (size > fitting)
        return unreadable(`a decimal of ${precision} digits in ${size} bytes instead of ${fitting}`);
      return read(`Decimal(${precision}, ${scale})`);
    }
    case 'string':
    case 'enum':
      return read('String');
    default:
      return unreadable(name === 'null' ? alwaysNull : `of type ${name}`);
  }
}
