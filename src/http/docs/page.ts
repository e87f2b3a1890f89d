import { html, raw } from 'hono/html';
import { changesTag } from '../openapi/changes.ts';
import { exampleOptions } from '../openapi/examples.ts';
import type { OpenApiDocument } from '../openapi/model.ts';
import { type Branding, logoAddress } from '../page/branding.ts';
import { errors, formats, limits } from './answers.ts';
import { changesSection } from './changes.ts';
import {
  anchor,
  answersOf,
  bodyFields,
  envelopeFields,
  familySection,
  firstReport,
  jsonType,
  operationsOf,
  tagsByKind,
  title,
} from './families.ts';
import { code, type Html, inline, prose, sample, table } from './prose.ts';
import { docsScript } from './script.ts';

/** The document as one page that needs nothing but itself. */
export function docsPage(document: OpenApiDocument, brand: Branding, style: string): Html {
  const { info } = document;
  const { families, others } = tagsByKind(document);
  const contents = [
    ['ask', 'Ask for a report'],
    ['try', 'Try it'],
    ...families.map(({ name }) => [anchor(name), title(name)] as const),
    ['envelope', 'The envelope'],
    ['formats', 'Formats'],
    ['errors', 'Errors'],
    ['limits', 'Limits'],
    ...others.map(({ name }) => [anchor(name), name === changesTag ? 'Changed days' : title(name)] as const),
  ] as const;
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
<div class="frame">
<header class="masthead">
<a class="brand" href="/app"><img src="${logoAddress(brand)}" alt="">${brand.name}</a>
<h1>Reports over HTTP</h1>
<p class="summary">${info.summary}</p>
<ul class="facts"><li>Version ${info.version}</li><li><a href="/openapi.json">openapi.json</a></li><li><a href="/app">Reports as a page</a></li></ul>
</header>
<div class="columns">
<nav aria-label="Contents"><ul>
${contents.map(([id, text]) => html`<li><a href="#${id}">${text}</a></li>\n`)}</ul></nav>
<main id="main">
${askSection(document)}
${trySection(document)}
${families.map((tag) => familySection(document, tag))}
${envelopeSection(document)}
${formats(document)}
${errors(document)}
${limits(document)}
${others.map((tag) => (tag.name === changesTag ? changesSection : serviceSection)(document, tag))}
</main>
</div>
<footer>${info.title} ${info.version}. Licence: ${info.license.name}.</footer>
</div>
<script>${raw(docsScript)}</script>
</body>
</html>
`;
}

function askSection(document: OpenApiDocument): Html {
  const { fields, required } = bodyFields(document);
  const first = firstReport(document);
  const body = JSON.stringify(first?.operation.requestBody?.content['application/json']?.example);
  const curl = [
    `curl -sS --compressed "$BASE_URL${first?.path}" \\`,
    `  -H "authorization: Bearer $TOKEN" -H 'content-type: application/json' \\`,
    `  -d '${body}'`,
  ].join('\n');
  const [scheme] = Object.values(document.components.securitySchemes);
  return html`<section aria-labelledby="ask"><h2 id="ask">Ask for a report</h2>
${prose(document.info.description)}
${sample(curl, 'A request with curl')}
<h3>The request</h3>
<p>Every endpoint takes a body of the same fields, a JSON object sent as <code>application/json</code>, and a login token in <code>authorization: Bearer</code>. ${scheme?.description}</p>
${table(
  'Fields of the body',
  ['field', 'JSON', 'needed', 'meaning'],
  Object.entries(fields).map(([id, field]) => [
    code(id),
    html`<span class="short">${jsonType(field)}</span>`,
    html`${required.includes(id) ? 'yes' : 'no'}`,
    inline(field.description ?? ''),
  ]),
)}
<p>Unknown fields are ignored; a known one with a wrong value is 400, with its name in <code>field</code>.</p>
${sample(exampleOptions, 'A body with optional fields')}</section>`;
}

function trySection(document: OpenApiDocument): Html {
  const { families } = tagsByKind(document);
  const mediaTypes = Object.keys(answersOf(firstReport(document)));
  const options = families.map(
    ({ name }) =>
      html`<optgroup label="${title(name)}">${operationsOf(document, name).map(
        ({ path }) => html`<option>${path}</option>`,
      )}</optgroup>`,
  );
  return html`<section aria-labelledby="try"><h2 id="try">Try it</h2>
<p>The request goes to this service and to nowhere else. The token stays in its field: it is not stored, and it is gone when you leave the page.</p>
<noscript><p class="bad">The form needs JavaScript; everything else on this page does not.</p></noscript>
<div id="try-panel" hidden>
<form id="try-form" autocomplete="off">
<div><label for="endpoint">Endpoint</label><select id="endpoint" name="endpoint">${options}</select></div>
<div><label for="token">Login token</label><input id="token" name="token" required autocomplete="off" spellcheck="false" placeholder="adt_…"></div>
<div class="third"><label for="start">start_time</label><input id="start" name="start" type="date" required></div>
<div class="third"><label for="end">end_time</label><input id="end" name="end" type="date" required></div>
<div class="third"><label for="format">Format</label><select id="format" name="format">${mediaTypes.map(
    (type) => html`<option>${type}</option>`,
  )}</select></div>
<div class="full"><button name="send">Send</button><span class="soft">Shows the status, the headers and the first rows.</span></div>
</form>
<pre id="curl" tabindex="0" role="group" aria-label="The same with curl"></pre>
<div id="answer" aria-live="polite"></div></div></section>`;
}

function envelopeSection(document: OpenApiDocument): Html {
  return html`<section aria-labelledby="envelope"><h2 id="envelope">The envelope</h2>
<p>JSON answers are an object with one key, <code>result</code>.</p>
${table(
  'Fields of result',
  ['field', 'JSON', 'meaning'],
  Object.entries(envelopeFields(document, firstReport(document), true)).map(([id, field]) => [
    code(id),
    html`<span class="short">${jsonType(field)}</span>`,
    inline(field.description ?? ''),
  ]),
)}</section>`;
}

function serviceSection(document: OpenApiDocument, tag: OpenApiDocument['tags'][number]): Html {
  const operations = operationsOf(document, tag.name);
  const isOpen = operations.every(({ operation }) => operation.security?.length === 0);
  return html`<section aria-labelledby="${anchor(tag.name)}"><h2 id="${anchor(tag.name)}">${title(tag.name)}</h2>
<p>${inline(tag.description)}</p>
${table(
  isOpen ? 'Paths without a login token' : 'Paths with a login token',
  ['path', 'answers', 'what it says'],
  operations.map(({ path, method, operation }) => [
    html`<span class="method">${method.toUpperCase()}</span> ${code(path)}`,
    html`${Object.keys(operation.responses).join(', ')}`,
    inline(operation.summary),
  ]),
)}</section>`;
}
