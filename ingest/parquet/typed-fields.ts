import type { SchemaElement } from 'hyparquet';
import { eventFields, type TypedFields } from '../event/event-insert.ts';

/**
 * The fields of a Parquet file that the engine can read as the values they are, none of which it would bend: of
 * other types it would. A column of another type is read as text and checked as text.
 */
export function typedFieldsOf(schema: readonly SchemaElement[]): TypedFields {
  return Object.fromEntries(
    eventFields.flatMap((name) => {
      const element = schema.find((column) => column.name === name);
      const kind = element && kindOf(element);
      return kind && kinds[name] === kind ? [[name, kind]] : [];
    }),
  );
}

const kinds: TypedFields = {
  event_time: 'time',
  quantity: 'integer',
  spend: 'decimal',
  revenue: 'decimal',
  confirmed: 'boolean',
};

function kindOf({
  type,
  converted_type: converted,
  logical_type: logical,
}: SchemaElement): TypedFields[keyof TypedFields] {
  switch (logical?.type) {
    case 'TIMESTAMP':
      return 'time';
    case 'DECIMAL':
      // All of its numbers are money: 6 places, 12 digits before them.
      return logical.scale <= 6 && logical.precision - logical.scale <= 12 ? 'decimal' : undefined;
    case 'INTEGER':
      return logical.bitWidth < 64 || logical.isSigned ? 'integer' : undefined;
    default:
      if (type === 'BOOLEAN') return 'boolean';
      return logical === undefined && converted === undefined && (type === 'INT32' || type === 'INT64')
        ? 'integer'
        : undefined;
  }
}
