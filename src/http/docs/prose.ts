import { html } from 'hono/html';

export type Html = ReturnType<typeof html>;

/** A sentence of the document, with its `code` as such. */
export function inline(text: string): Html {
  return html`${text.split('`').map((part, n) => (n % 2 ? html`<code>${part}</code>` : part))}`;
}

/** Paragraphs of the document. */
export function prose(text: string): Html {
  return html`${text.split('\n\n').map((paragraph) => html`<p>${inline(paragraph)}</p>`)}`;
}

/** A table that scrolls by itself where it is too wide, also by keyboard; the first cell of a row is its head. */
export function table(caption: string, head: readonly string[], rows: readonly (readonly Html[])[]): Html {
  return html`<div class="scroll" role="group" aria-label="${caption}" tabindex="0"><table>
<caption>${caption}</caption>
<thead><tr>${head.map((name) => html`<th scope="col">${name}</th>`)}</tr></thead>
<tbody>${rows.map(
    ([first, ...others]) =>
      html`<tr><th scope="row">${first}</th>${others.map((cell) => html`<td>${cell}</td>`)}</tr>\n`,
  )}</tbody></table></div>`;
}

export function code(text: string): Html {
  return html`<code>${text}</code>`;
}

/** Text or JSON, as it is, in a box that scrolls by keyboard too. */
export function sample(value: unknown, label: string): Html {
  const text = typeof value === 'string' ? value.trimEnd() : JSON.stringify(value, null, 2);
  return html`<pre tabindex="0" role="group" aria-label="${label}">${text}</pre>`;
}
