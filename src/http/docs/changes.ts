import { html } from 'hono/html';
import type { JsonSchema, OpenApiDocument } from '../openapi/model.ts';
import { anchor, answersOf, jsonType, operationsOf } from './families.ts';
import { code, type Html, inline, prose, sample, table } from './prose.ts';

/** Which days changed: the same for every family. */
export function changesSection(document: OpenApiDocument, tag: OpenApiDocument['tags'][number]): Html {
  const operations = operationsOf(document, tag.name);
  const [first] = operations;
  const { ChangesRequest, Changes } = document.components.schemas;
  const result = Changes?.properties?.result;
  const request = first?.operation.requestBody?.content['application/json']?.example;
  const answer = answersOf(first)['application/json']?.example;
  return html`<section aria-labelledby="${anchor(tag.name)}"><h2 id="${anchor(tag.name)}">Changed days</h2>
<p>${inline(tag.description)} ${operations.map(({ path }, n) => html`${n > 0 ? ', ' : ''}${code(path)}`)}</p>
${prose(first?.operation.description ?? '')}
${fields('Fields of the body', ChangesRequest)}
${sample(request, 'A request for changed days')}
${fields('Fields of result', result)}
${fields('Fields of a changed day', result?.properties?.days?.items)}
${sample(answer, 'Answer with changed days')}</section>`;
}

function fields(caption: string, schema: JsonSchema | undefined): Html {
  return table(
    caption,
    ['field', 'JSON', 'meaning'],
    Object.entries(schema?.properties ?? {}).map(([id, field]) => [
      code(id),
      html`<span class="short">${jsonType(field)}</span>`,
      inline(field.description ?? ''),
    ]),
  );
}
