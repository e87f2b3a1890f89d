import {
  registerSchema,
  setShouldValidateFormat,
  unregisterSchema,
  validate,
} from '@hyperjump/json-schema/openapi-3-1';
import '@hyperjump/json-schema/formats';
import type { OpenApiDocument } from '../../src/http/openapi/model.ts';

const address = 'https://adtally.test/openapi.json';
const dialect = 'https://spec.openapis.org/oas/3.1/schema-base';

/** The document of a service, registered with an independent validator. */
export async function readDocument(url: string): Promise<OpenApiDocument> {
  setShouldValidateFormat(true);
  const text = await (await fetch(`${url}/openapi.json`)).text();
  // Another file of the same process may have registered the document of its service.
  unregisterSchema(address);
  registerSchema(JSON.parse(text), address, dialect);
  return JSON.parse(text);
}

/** What the validator finds wrong with a value, by a schema at some place of the document. */
export async function faults(value: unknown, ...place: string[]): Promise<unknown[]> {
  const pointer = place.map((part) => part.replaceAll('~', '~0').replaceAll('/', '~1')).join('/');
  const schema = place.length ? `${address}#/${pointer}` : dialect;
  const output = await validate(schema, JSON.parse(JSON.stringify(value)), 'BASIC');
  return output.valid ? [] : (output.errors ?? []);
}
