import { html, raw } from 'hono/html';
import { type Branding, logoAddress } from '../../config/branding.ts';
import type { JsonSchema, MediaType, OpenApiDocument, Operation, Parameter } from '../openapi/model.ts';

type Html = ReturnType<typeof html>;

interface PathOperation {
  readonly path: string;
  readonly method: string;
  readonly operation: Operation;
}

/** The document as one page that loads nothing and has no script. */
export function docsPage(document: OpenApiDocument, heading: string, brand: Branding, style: string): Html {
  const { info, tags } = document;
  const app = document.paths['/app'] && '/app';
  const sections = [
    { id: 'ask', title: 'How to begin', content: introduction(document) },
    ...tags.map((tag) => ({
      id: `about-${tag.name}`,
      title: sentence(tag.name),
      content: tagged(document, tag),
    })),
    { id: 'headers', title: 'Headers of answers', content: headers(document) },
    { id: 'errors', title: 'Errors', content: errors(document) },
  ].filter(({ content }) => content !== '');
  return html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<title>${info.title} ${info.version}</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="description" content="${info.summary}">
<link rel="icon" href="${logoAddress(brand)}">
<style>${raw(style)}</style>
</head>
<body>
<a class="skip" href="#main">Skip to the content</a>
<header>
<a class="brand" href="${app ?? '/docs'}"><img src="${logoAddress(brand)}" alt="">${brand.name}</a>
<h1>${heading}</h1>
<p>${info.summary}</p>
<p class="soft">Version ${info.version} · <a href="/openapi.json">openapi.json</a>${app && html` · <a href="${app}">Reports as a page</a>`}</p>
</header>
<nav aria-label="Contents"><ul>
${sections.map(({ id, title }) => html`<li><a href="#${id}">${title}</a></li>\n`)}</ul></nav>
<main id="main">
${sections.map(
  ({ id, title, content }) => html`<section aria-labelledby="${id}"><h2 id="${id}">${title}</h2>
${content}</section>
`,
)}</main>
<footer class="soft">${info.title} ${info.version}. Licence: ${info.license.name}.</footer>
</body>
</html>
`;
}

function introduction(document: OpenApiDocument): Html {
  const [first] = document.tags.flatMap(({ name }) => operationsOf(document, name));
  return html`${document.info.description.split('\n\n').map((text) => html`<p>${inline(text)}</p>`)}
${Object.values(document.components.securitySchemes).map(({ description }) => html`<p>${description}</p>`)}
${first && sample(curl(first), 'A request with curl')}`;
}

/** What the operations of a tag are, and what their requests and answers are made of, each field once. */
function tagged(document: OpenApiDocument, { name, description }: OpenApiDocument['tags'][number]): Html {
  const operations = operationsOf(document, name);
  const asked = operations.flatMap(({ operation }) => [
    ...parametersOf(document, operation).map((parameter): Field => ({ ...parameter, where: parameter.in })),
    ...Object.values(operation.requestBody?.content ?? {}).flatMap(({ schema }) =>
      fieldsOf(document, schema, 'body'),
    ),
  ]);
  const answered = operations.flatMap((entry) =>
    Object.values(answersOf(entry)).flatMap(({ schema }) => fieldsOf(document, schema, 'JSON')),
  );
  return html`<p>${inline(description)}</p>
${operations.map((entry) => endpoint(document, entry))}
${fieldTable(`Fields of requests: ${name}`, asked)}
${fieldTable(`Fields of answers: ${name}`, answered)}`;
}

function endpoint(document: OpenApiDocument, entry: PathOperation): Html {
  const { path, method, operation } = entry;
  const answers = Object.entries(answersOf(entry));
  const means = ({ schema }: MediaType) => resolved(document, schema).description;
  return html`<details id="${operation.operationId}">
<summary><code>${method.toUpperCase()} ${path}</code> <span class="soft">${operation.summary}</span></summary>
${operation.description && html`<p>${inline(operation.description)}</p>`}
${sample(curl(entry), `${operation.operationId} with curl`)}
${Object.entries(operation.requestBody?.content ?? {}).map(([mediaType, media]) => samples(`Body as ${mediaType}`, media))}
${answers.map(([mediaType, media]) => samples(`Answer as ${mediaType}`, media, means(media)))}
<p>Answers ${Object.keys(operation.responses).join(', ')}.</p></details>
`;
}

function samples(title: string, { example, examples = {} }: MediaType, meaning = ''): Html {
  const all = example === undefined ? Object.values(examples) : [{ summary: '', value: example }];
  return html`<p><b>${title}</b>${meaning && html`: ${inline(meaning)}`}</p>
${all.map(({ summary, value }) => html`${summary && html`<p>${inline(summary)}</p>`}${sample(value, title)}`)}`;
}

function headers({ components }: OpenApiDocument): Html | string {
  const described = Object.entries(components.headers);
  if (described.length === 0) return '';
  return table(
    'Headers',
    ['header', 'meaning', 'example'],
    described.map(([name, { description, example }]) => [
      html`<code>${name}</code>`,
      inline(description),
      html`<code>${example}</code>`,
    ]),
  );
}

function errors({ components }: OpenApiDocument): Html {
  const { description = '', properties, examples } = components.schemas.Problem ?? {};
  const problems = (examples ?? []) as readonly { readonly status: number; readonly code: string }[];
  const when = (properties?.code?.['x-enum-descriptions'] ?? []) as readonly string[];
  return html`<p>${inline(description)} Quote <code>request_id</code> when you ask the operator about one.</p>
${table(
  'Codes',
  ['code', 'status', 'when'],
  problems.map(({ status, code }, n) => [html`<code>${code}</code>`, html`${status}`, inline(when[n] ?? '')]),
)}
${sample(problems[0], 'A problem')}`;
}

/** A parameter, or a field of a body or of an answer: `result.rows[].spent`. */
interface Field {
  readonly name: string;
  readonly where: string;
  readonly required?: boolean;
  readonly schema: JsonSchema;
  readonly description?: string | undefined;
}

function fieldsOf(document: OpenApiDocument, schema: JsonSchema, where: string, within = ''): Field[] {
  const { anyOf = [], items, properties = {}, required = [] } = resolved(document, schema);
  return [
    ...anyOf.flatMap((each) => fieldsOf(document, each, where, within)),
    ...(items ? fieldsOf(document, items, where, `${within}[]`) : []),
    ...Object.entries(properties).flatMap(([id, field]): Field[] => {
      const name = within ? `${within}.${id}` : id;
      const { description } = resolved(document, field);
      return [
        { name, where, required: required.includes(id), schema: field, description },
        ...fieldsOf(document, field, where, name),
      ];
    }),
  ];
}

/** Each field once, with everything that it means somewhere. */
function fieldTable(caption: string, fields: readonly Field[]): Html | string {
  if (fields.length === 0) return '';
  const byName = new Map<string, { readonly first: Field; readonly meanings: Set<string> }>();
  for (const field of fields) {
    const known = byName.get(field.name) ?? { first: field, meanings: new Set() };
    byName.set(field.name, known);
    known.meanings.add(field.description ?? '');
  }
  const rows = [...byName].map(([name, { first, meanings }]) => [
    html`<code>${name}</code>`,
    html`${first.where}${first.required ? ', always' : ''}`,
    html`${typeOf(first.schema)}`,
    html`${inline([...meanings].filter(Boolean).join(' Or: '))}${examplesOf(first.schema)}`,
  ]);
  return html`<details><summary>${caption}</summary>${table(caption, ['name', 'in', 'type', 'meaning'], rows)}</details>`;
}

function typeOf({ type = 'object', format, anyOf, 'x-column-type': column }: JsonSchema): string {
  if (anyOf) return anyOf.map(typeOf).join(' or ');
  return [[type].flat().join(' or '), format && `(${format})`, column].filter(Boolean).join(' ');
}

/** The values of a longer enumeration are not listed. */
const shown = 12;

function examplesOf({ examples, enum: names }: JsonSchema): Html | string {
  const listed = (values: readonly unknown[]) =>
    values.map((value) => html` <code>${typeof value === 'string' ? value : JSON.stringify(value)}</code>`);
  if (names && names.length <= shown) return html` <span class="soft">One of${listed(names)}.</span>`;
  return examples ? html` <span class="soft">For example${listed(examples)}.</span>` : '';
}

/** Every operation of a tag, in the order of the document. */
function operationsOf(document: OpenApiDocument, tag: string): PathOperation[] {
  return Object.entries(document.paths)
    .flatMap(([path, methods]) =>
      Object.entries(methods).map(([method, operation]): PathOperation => ({ path, method, operation })),
    )
    .filter(({ operation }) => operation.tags.includes(tag));
}

/** The answer 200 in each of its media types. */
function answersOf({ operation }: PathOperation): Readonly<Record<string, MediaType>> {
  const answer = operation.responses[200];
  return (answer && 'content' in answer && answer.content) || {};
}

function parametersOf(document: OpenApiDocument, { parameters = [] }: Operation): Parameter[] {
  const { parameters: named } = document.components;
  return parameters.flatMap((each) =>
    'name' in each ? each : (named[each.$ref.split('/').at(-1) ?? ''] ?? []),
  );
}

function resolved(document: OpenApiDocument, schema: JsonSchema): JsonSchema {
  return document.components.schemas[schema.$ref?.split('/').at(-1) ?? ''] ?? schema;
}

/** The operation as a line for a shell, with the examples of its parameters and its body. */
function curl({ path, method, operation }: PathOperation): string {
  const parameters = (operation.parameters ?? []).flatMap((each) => ('name' in each ? each : []));
  const exampleValue = ({ schema }: Parameter) =>
    [schema.examples, schema.enum].flat().find(Boolean) ?? 'VALUE';
  const query = parameters.filter((each) => each.in === 'query' && each.required);
  const address = path.replace(/\{(\w+)\}/g, (_, name) =>
    parameters
      .filter((each) => each.name === name)
      .map(exampleValue)
      .join(''),
  );
  const [taken] = Object.entries(operation.requestBody?.content ?? {});
  const body = taken ? [`-H 'content-type: ${taken[0]}'`, bodyOf(taken[1])] : [];
  return [
    `curl -sS --compressed ${method === 'head' ? '--head ' : ''}"$BASE_URL${address}${query.map((each, n) => `${n ? '&' : '?'}${each.name}=${exampleValue(each)}`).join('')}"`,
    ...(operation.security?.length === 0 ? [] : ['-H "authorization: Bearer $TOKEN"']),
    ...parameters
      .filter((each) => each.in === 'header' && each.required)
      .map((each) => `-H '${each.name.toLowerCase()}: ${exampleValue(each)}'`),
    ...body,
  ].join(' \\\n  ');
}

function bodyOf({ example, examples = {} }: MediaType): string {
  const value = example ?? Object.values(examples)[0]?.value;
  if (value === undefined) return '--data-binary @FILE';
  return `-d '${typeof value === 'string' ? value.trimEnd() : JSON.stringify(value)}'`;
}

/** `ad_units` as a heading. */
function sentence(tag: string): string {
  return (tag.charAt(0).toUpperCase() + tag.slice(1)).replaceAll('_', ' ');
}

/** A sentence of the document, with its `code` as such. */
function inline(text: string): Html {
  return html`${text.split('`').map((part, n) => (n % 2 ? html`<code>${part}</code>` : part))}`;
}

/** A table that scrolls by itself where it is too wide, also by keyboard; the first cell of a row is its head. */
function table(caption: string, head: readonly string[], rows: readonly (readonly Html[])[]): Html {
  return html`<div class="scroll" role="group" aria-label="${caption}" tabindex="0"><table>
<thead><tr>${head.map((name) => html`<th scope="col">${name}</th>`)}</tr></thead>
<tbody>${rows.map(
    ([first, ...others]) =>
      html`<tr><th scope="row">${first}</th>${others.map((cell) => html`<td>${cell}</td>`)}</tr>\n`,
  )}</tbody></table></div>`;
}

/** Text or JSON, as it is, in a box that scrolls by keyboard too. */
function sample(value: unknown, label: string): Html {
  const text = typeof value === 'string' ? value.trimEnd() : JSON.stringify(value, null, 2);
  return html`<pre tabindex="0" role="group" aria-label="${label}">${text}</pre>`;
}
