/**
 * The script of the page: lets the reader try an endpoint. The login token stays in its field: it is sent with
 * the request and kept nowhere. Plain text for the browser, so that the page works without a build.
 */
export const docsScript = String.raw`
'use strict';
(() => {
  const maxBytes = 256 * 1024, maxRows = 20;
  const form = document.getElementById('try-form');
  const output = document.getElementById('answer');
  const curl = document.getElementById('curl');
  const { endpoint, token, start, end, format, send } = form.elements;
  let running;

  const day = (ago) => new Date(Date.now() - ago * 864e5).toISOString().slice(0, 10);
  const body = () => JSON.stringify({ start_time: start.value, end_time: end.value });
  const element = (name, text, className) => {
    const made = document.createElement(name);
    if (text !== undefined) made.textContent = text;
    if (className) made.className = className;
    return made;
  };
  const scrolling = (child, label) => {
    const box = element('div', undefined, 'scroll');
    box.tabIndex = 0;
    box.setAttribute('role', 'region');
    box.setAttribute('aria-label', label);
    box.append(child);
    return box;
  };

  function table(rows) {
    const made = element('table', undefined, 'rows'), head = element('tr');
    const names = Object.keys(rows[0]);
    const align = (value) => (typeof value === 'number' ? 'number' : '');
    for (const name of names) {
      const cell = element('th', name, align(rows[0][name]));
      cell.scope = 'col';
      head.append(cell);
    }
    made.createTHead().append(head);
    const lines = made.createTBody();
    for (const row of rows.slice(0, maxRows)) {
      const line = lines.insertRow();
      for (const name of names) line.append(element('td', row[name], align(row[name])));
    }
    return scrolling(made, 'First rows');
  }

  // Of an answer that was not read to its end, the rows that are whole.
  function rowsOf(text, type, whole) {
    try {
      if (type.includes('ndjson')) {
        const lines = text.split('\n').slice(0, -1).slice(0, maxRows);
        return { rows: lines.map((line) => JSON.parse(line)) };
      }
      if (type.startsWith('application/json')) {
        return JSON.parse(whole ? text : text.slice(0, text.lastIndexOf('},{')) + '}]}}').result;
      }
    } catch {}
    return undefined;
  }

  async function readStart(response, abort) {
    const reader = response.body.getReader(), chunks = [];
    let bytes = 0;
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return { blob: new Blob(chunks), whole: true };
      chunks.push(value);
      bytes += value.length;
      if (bytes >= maxBytes) {
        abort.abort();
        return { blob: new Blob(chunks), whole: false };
      }
    }
  }

  async function show(response, milliseconds, abort) {
    const { blob, whole } = await readStart(response, abort);
    const type = response.headers.get('content-type') || '';
    const status = element('p', undefined, response.ok ? 'status good' : 'status bad');
    status.append(element('strong', response.status + ' ' + response.statusText));
    const size = blob.size.toLocaleString('en') + ' bytes';
    status.append(' first byte after ' + milliseconds + ' ms, ' + (whole ? size : 'stopped reading after ' + size));
    const headers = element('dl', undefined, 'headers');
    for (const [name, value] of response.headers) headers.append(element('dt', name), element('dd', value));
    const details = element('details');
    details.append(element('summary', 'Headers'), headers);
    details.open = true;
    output.replaceChildren(status);

    if (/arrow|parquet/.test(type)) {
      output.append(element('p', 'A binary file: the curl line above fetches it with -o FILE.'), details);
      return;
    }
    const text = await blob.text();
    const result = response.ok ? rowsOf(text, type, whole) : undefined;
    if (result && result.rows.length > 0) {
      const shown = Math.min(maxRows, result.rows.length);
      const all = whole && type.startsWith('application/json') ? ' of ' + result.rows.length : '';
      output.append(element('h4', 'The first ' + shown + all + ' rows'), table(result.rows));
    } else {
      let raw = text.split('\n').slice(0, maxRows + 1).join('\n').slice(0, 20000);
      try { raw = JSON.stringify(JSON.parse(text), null, 2); } catch {}
      output.append(element('h4', 'Body'), scrolling(element('pre', raw), 'Body'));
    }
    output.append(details);
  }

  function showCommand() {
    const accept = format.selectedIndex > 0 ? " \\\n  -H 'accept: " + format.value + "'" : '';
    curl.textContent = 'curl -sS --compressed ' + location.origin + endpoint.value +
      ' \\\n  -H "authorization: Bearer $TOKEN" -H \'content-type: application/json\'' + accept +
      " \\\n  -d '" + body() + "'";
  }

  form.addEventListener('submit', async (event) => {
    event.preventDefault();
    if (running) running.abort();
    const abort = running = new AbortController();
    output.replaceChildren(element('p', 'Waiting …'));
    output.setAttribute('aria-busy', 'true');
    const startedAt = performance.now();
    try {
      const response = await fetch(endpoint.value, {
        method: 'POST',
        headers: {
          authorization: 'Bearer ' + token.value.trim(),
          'content-type': 'application/json',
          accept: format.value,
        },
        body: body(),
        cache: 'no-store',
        credentials: 'omit',
        signal: abort.signal,
      });
      await show(response, Math.round(performance.now() - startedAt), abort);
    } catch (error) {
      if (abort === running) output.replaceChildren(element('p', 'No complete answer: ' + error.message, 'status bad'));
    }
    output.removeAttribute('aria-busy');
  });
  form.addEventListener('input', showCommand);
  for (const link of document.querySelectorAll('a[data-endpoint]')) {
    link.addEventListener('click', () => {
      endpoint.value = link.dataset.endpoint;
      showCommand();
      (token.value ? send : token).focus({ preventScroll: true });
    });
  }
  addEventListener('pagehide', () => { token.value = ''; });
  // A link to an endpoint shows it unfolded.
  const unfold = () => {
    const target = document.getElementById(location.hash.slice(1));
    if (target && target.tagName === 'DETAILS') target.open = true;
  };
  addEventListener('hashchange', unfold);
  unfold();

  start.value = day(30);
  end.value = day(1);
  showCommand();
  document.getElementById('try-panel').hidden = false;
})();
`;
