import { html } from 'hono/html';
import { changesTag } from '../openapi/changes.ts';
import type { Content, JsonSchema, OpenApiDocument, Operation } from '../openapi/model.ts';
import { code, type Html, inline, sample, table } from './prose.ts';

interface PathOperation {
  readonly path: string;
  readonly method: string;
  readonly operation: Operation;
}

/** Every operation of a tag, in the order of the document. */
export function operationsOf(document: OpenApiDocument, tag: string): PathOperation[] {
  return Object.entries(document.paths)
    .flatMap(([path, methods]) =>
      Object.entries(methods).map(([method, operation]): PathOperation => ({ path, method, operation })),
    )
    .filter(({ operation }) => operation.tags.includes(tag));
}

/** A report that stands for all where they are alike. */
export function firstReport(document: OpenApiDocument): PathOperation | undefined {
  const [tag] = tagsByKind(document).families;
  return tag && operationsOf(document, tag.name)[0];
}

/** The answer 200 in each of its media types. */
export function answersOf(entry: PathOperation | undefined): Content {
  const answer = entry?.operation.responses[200];
  return (answer && 'content' in answer && answer.content) || {};
}

/** The tags whose endpoints are reports, and those of the service itself. */
export function tagsByKind(document: OpenApiDocument) {
  const isFamily = ({ name }: { name: string }) =>
    name !== changesTag && operationsOf(document, name).every(({ operation }) => operation.requestBody);
  return {
    families: document.tags.filter(isFamily),
    others: document.tags.filter((tag) => !isFamily(tag)),
  };
}

/** A report family: its endpoints, unfolding to fields and examples, and what its fields mean. */
export function familySection(document: OpenApiDocument, tag: OpenApiDocument['tags'][number]): Html {
  const operations = operationsOf(document, tag.name);
  const base = Object.keys(rowFields(document, operations[0]));
  const all = operations.map((entry) => rowFields(document, entry));
  const fields: Record<string, JsonSchema> = Object.assign({}, ...all, all[0]);
  // Only the narrowing to a day gives a field another meaning.
  const meaning = (id: string) =>
    [...new Set(all.flatMap((row) => row[id]?.description ?? []))].join(' By day: ');
  return html`<section aria-labelledby="${anchor(tag.name)}"><h2 id="${anchor(tag.name)}">${title(tag.name)}</h2>
<p>${inline(tag.description)}</p>
${operations.map((entry) => endpoint(document, entry, base))}
<h3>Fields of ${tag.name}</h3>
${table(
  'Row fields, highlighted where only some breakdowns have them; the type is that of column_metadata',
  ['field', 'JSON', 'type', 'meaning'],
  Object.entries(fields).map(([id, field]) => [
    base.includes(id) ? code(id) : html`<span class="added">${code(id)}</span>`,
    html`<span class="short">${jsonType(field)}</span>`,
    html`${field['x-column-type']}`,
    html`${inline(meaning(id))}${examplesOf(field)}`,
  ]),
)}</section>`;
}

/** The id of the section of a tag; operations have theirs without more. */
export const anchor = (tag: string): string => `about-${tag}`;

/** `ad_units` as a heading. */
export function title(tag: string): string {
  const words = tag.replaceAll('_', ' ');
  return words.charAt(0).toUpperCase() + words.slice(1);
}

/**
 * The fields of what an answer of JSON has under `result`.
 * @param withOptions also those that optional fields of the body add
 */
export function envelopeFields(
  document: OpenApiDocument,
  entry: PathOperation | undefined,
  withOptions = false,
) {
  const schema = answersOf(entry)['application/json']?.schema;
  const [plain, asked] = schema?.anyOf ?? [];
  const chosen = withOptions ? asked : plain;
  return (chosen && resolve(document, chosen).properties?.result?.properties) ?? {};
}

/** The fields that the body of a report may have on some endpoint. */
export function bodyFields(document: OpenApiDocument): {
  fields: Record<string, JsonSchema>;
  required: string[];
} {
  const schemas = document.tags
    .flatMap(({ name }) => operationsOf(document, name))
    .map(({ operation }) => operation.requestBody?.content['application/json']?.schema)
    .map((schema) => (schema ? resolve(document, schema) : {}));
  return {
    fields: Object.assign({}, ...schemas.map(({ properties }) => properties)),
    required: [...new Set(schemas.flatMap(({ required = [] }) => required))],
  };
}

export function jsonType({ type, format, anyOf }: JsonSchema): string {
  if (anyOf) return anyOf.map(jsonType).join(' or ');
  const types = [type ?? 'array'].flat().join(' or ');
  return format ? `${types} (${format})` : types;
}

function endpoint(document: OpenApiDocument, entry: PathOperation, base: readonly string[]): Html {
  const { path, method, operation } = entry;
  const fields = Object.keys(rowFields(document, entry));
  return html`<details class="endpoint" id="${operation.operationId}">
<summary><span class="method">${method.toUpperCase()}</span><span class="path">${breakable(path)}</span>
<span class="what">${operation.summary}</span></summary>
<div><p>${inline(operation.description)} <a href="#try" data-endpoint="${path}">Try it</a></p>
<h4>Row fields, in this order</h4>
<ul class="fields">${fields.map(
    (id) => html`<li${base.includes(id) ? '' : html` class="added"`}><code>${id}</code></li>`,
  )}</ul>
<div class="samples">${Object.entries(answersOf(entry)).map(([mediaType, { example }]) =>
    example === undefined
      ? ''
      : html`<details><summary>Answer as ${mediaType}</summary>${sample(example, `Answer as ${mediaType}`)}</details>`,
  )}</div></div></details>
`;
}

/** May be broken after its slashes. */
function breakable(path: string): Html {
  return html`${path.split('/').map((part, n) => (n > 1 ? html`/<wbr>${part}` : html`${n ? '/' : ''}${part}`))}`;
}

function rowFields(document: OpenApiDocument, entry: PathOperation | undefined): Record<string, JsonSchema> {
  const rows = envelopeFields(document, entry).rows?.items;
  return { ...(rows && resolve(document, rows).properties) };
}

function resolve(document: OpenApiDocument, schema: JsonSchema): JsonSchema {
  const name = schema.$ref?.replace('#/components/schemas/', '');
  return (name !== undefined && document.components.schemas[name]) || schema;
}

function examplesOf({ examples }: JsonSchema): Html | string {
  if (!Array.isArray(examples)) return '';
  return html` <span class="soft">For example ${examples.join(', ')}.</span>`;
}
