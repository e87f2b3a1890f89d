import * as z from 'zod';
import type { JsonSchema, MediaType } from './model.ts';

const components = '#/components/schemas/';
export const schemaRef = (name: string): JsonSchema => ({ $ref: components + name });

/** Schemas by the names that they have among the components. */
export class NamedSchemas {
  readonly #named = z.registry<{ id: string }>();

  name<Schema extends z.ZodType>(id: string, schema: Schema): Schema {
    this.#named.add(schema, { id });
    return schema;
  }

  /** A body of this schema, which gets the name. */
  body(id: string, schema: z.ZodType, example = exampleOf(schema)): MediaType {
    this.name(id, schema);
    return { schema: schemaRef(id), example };
  }

  /** An answer, which has it as `result`. */
  result(id: string, result: z.ZodType): MediaType {
    return this.body(id, z.strictObject({ result }));
  }

  /** All that were named until now. */
  all(): Record<string, JsonSchema> {
    const { schemas } = z.toJSONSchema(this.#named, { io: 'input', uri: (id) => components + id });
    return Object.fromEntries(
      Object.entries(schemas).map(([id, schema]) => [id, withoutRefused(schema as JsonSchema)]),
    );
  }
}

/** The name of a schema: `CampaignsDeviceDateRequest`. */
export function schemaName(endpoint: string, what: string): string {
  return `${endpoint}_${what}`.replace(/(^|_)(.)/g, (_, _separator, letter: string) => letter.toUpperCase());
}

/**
 * The schema without the fields that a breakdown refuses, and without titles, which name values on a command line; rules
 * between fields stay sentences.
 */
export function schemaOf(schema: z.ZodType): JsonSchema {
  const told = z.toJSONSchema(schema, {
    io: 'input',
    override: ({ jsonSchema }) => {
      delete jsonSchema.title;
    },
  });
  return withoutRefused(told as JsonSchema);
}

/** The schema without the fields that this breakdown refuses, whatever their value. */
function withoutRefused({ $schema: _, $id: __, ...schema }: JsonSchema): JsonSchema {
  const { properties } = schema;
  if (!properties) return schema;
  const taken = Object.entries(properties).filter(([, field]) => field.not === undefined);
  return { ...schema, properties: Object.fromEntries(taken) };
}

/** What a schema allows, made of the examples of its fields. An optional field is in it only where it has one. */
export const exampleOf = (schema: z.ZodType): unknown => exampleIn(schemaOf(schema));

function exampleIn({ anyOf: [first] = [], ...schema }: JsonSchema): unknown {
  if (first) return exampleIn({ ...first, ...schema });
  const { examples, enum: names, const: only, type, format = '', items, properties, required = [] } = schema;
  if (examples ?? names) return (examples ?? names)?.[0];
  if (only !== undefined) return only;
  if (items) return [exampleIn(items)];
  if (!properties) return formats[format] ?? values[String([type].flat()[0])];
  const told = Object.entries(properties).filter(([id, field]) => required.includes(id) || field.examples);
  return Object.fromEntries(told.map(([id, field]) => [id, exampleIn(field)]));
}

const formats: Readonly<Record<string, string>> = {
  date: '2026-10-31',
  'date-time': '2026-11-21T07:59:12.123456Z',
};
const values: Readonly<Record<string, unknown>> = { string: 'text', boolean: false, integer: 1, number: 0.5 };
