import { html } from 'hono/html';
import type { OpenApiDocument } from '../openapi/model.ts';
import { answersOf, firstReport } from './families.ts';
import { code, type Html, inline, sample, table } from './prose.ts';

/** The media types of a report and the headers of answers. */
export function formats(document: OpenApiDocument): Html {
  const { headers, schemas } = document.components;
  const describe = (reference: string | undefined) =>
    schemas[reference?.split('/').at(-1) ?? '']?.description ?? 'The envelope with everything, the default.';
  return html`<section aria-labelledby="formats"><h2 id="formats">Formats</h2>
<p>Ask with <code>Accept</code>. Every format has the same rows with the same fields in the same order.</p>
${table(
  'Media types of a report',
  ['media type', 'what comes'],
  Object.entries(answersOf(firstReport(document))).map(([mediaType, { schema }]) => [
    code(mediaType),
    inline(describe(schema.$ref)),
  ]),
)}
${table(
  'Headers of answers',
  ['header', 'meaning', 'example'],
  Object.entries(headers).map(([name, { description, example }]) => [
    code(name),
    inline(description),
    code(String(example)),
  ]),
)}</section>`;
}

/** Every code a problem can have. */
export function errors(document: OpenApiDocument): Html {
  const { Problem } = document.components.schemas;
  const descriptions = Problem?.properties?.code?.['x-enum-descriptions'];
  const examples = (Problem?.examples ?? []) as readonly { status: number; code: string }[];
  return html`<section aria-labelledby="errors"><h2 id="errors">Errors</h2>
<p>An error is <code>application/problem+json</code> (RFC 9457) with a stable <code>code</code>. Quote its <code>request_id</code> when you ask the operator about it.</p>
${table(
  'Codes',
  ['status', 'code', 'when'],
  examples.map((problem, n) => [
    html`${problem.status}`,
    code(problem.code),
    inline(Array.isArray(descriptions) ? String(descriptions[n]) : ''),
  ]),
)}
${sample(examples[0], 'A problem')}</section>`;
}

export function limits(document: OpenApiDocument): Html {
  const { requests, windowSeconds, maxBodyBytes, timeoutSeconds, reports, leastPace, sendTimeoutSeconds } =
    document['x-limits'];
  return html`<section aria-labelledby="limits"><h2 id="limits">Limits</h2>
${table(
  'What a request must stay within',
  ['limit', 'value', 'beyond it'],
  [
    [
      html`Requests of an account`,
      html`${requests} in ${windowSeconds} s, or its own: <code>RateLimit-Policy</code>`,
      html`429 <code>rate_limited</code>, with <code>Retry-After</code>`,
    ],
    [html`Body`, html`${maxBodyBytes} bytes`, html`413 <code>body_too_large</code>`],
    [html`Time of a report`, html`${timeoutSeconds} s`, html`500 <code>report_timeout</code>`],
    [
      html`Reports at a time`,
      html`${reports.mostOfAccount} of an account, ${reports.most} of all; others wait up to ${reports.waitSeconds} s`,
      html`429 <code>too_many_reports</code>, with <code>Retry-After</code>`,
    ],
    [
      html`Pace of an answer while others wait`,
      html`${leastPace.bytesPerSecond / 1024} KiB/s over ${leastPace.seconds} s`,
      html`the answer breaks off`,
    ],
    [html`Time an answer stays unread`, html`${sendTimeoutSeconds} s`, html`the answer breaks off`],
    [html`Range, rows`, html`none`, html``],
  ],
)}</section>`;
}
