import { ArrowRows } from '../arrow/arrow.ts';
import { loginWith } from '../state/key.ts';
import { factsOf, failureOf } from './headers.ts';
import type { Call, Failure, Message, Methods, ReportRequest } from './protocol.ts';
import { Report } from './report.ts';

/** The rows live here, apart from the page, so that nothing that takes long holds the page up. */

let shown: Report | undefined;
let running: AbortController | undefined;

/** Between two reports of progress. */
const progressMs = 250;
const post = (message: Message) => self.postMessage(message);

const methods: { [M in keyof Methods]: (argument: Parameters<Methods[M]>[0], id: number) => unknown } = {
  load,
  arrange: (argument) => current().arrange(argument),
  slice: (argument) => current().slice(argument),
  texts: (argument) => current().texts(argument),
  chart: (argument) => current().chart(argument),
  values: async ({ request, ...options }) => (await choices(request)).values(options),
};

self.addEventListener('message', async ({ data }: MessageEvent<Call>) => {
  try {
    post({ id: data.id, result: await methods[data.method](data.argument as never, data.id) });
  } catch (error) {
    post({ id: data.id, error: error instanceof Error ? error.message : String(error) });
  }
});

function current(): Report {
  if (!shown) throw new Error('there is no report');
  return shown;
}

let offered: { readonly key: string; readonly report: Promise<Report> } | undefined;

/** A small report beside the one shown, whose texts are offered to choose from; the last one is kept. */
function choices(request: ReportRequest): Promise<Report> {
  const key = JSON.stringify(request);
  if (offered?.key === key) return offered.report;
  const ask = async () => {
    const response = await send(request);
    if (!response.ok || !response.body) throw new Error((await failureOf(response)).detail);
    const rows = new ArrowRows();
    await read(response.body, rows, () => {});
    return new Report(rows, factsOf(response.headers), request.family);
  };
  const report = ask();
  offered = { key, report };
  report.catch(() => {
    offered = undefined;
  });
  return report;
}

function send({ url, key, body }: ReportRequest, signal?: AbortSignal): Promise<Response> {
  const { headers, credentials } = loginWith(key);
  return fetch(url, {
    method: 'POST',
    headers: {
      ...headers,
      'content-type': 'application/json',
      accept: 'application/vnd.apache.arrow.stream',
    },
    body: JSON.stringify(body),
    cache: 'no-store',
    credentials,
    ...(signal && { signal }),
  });
}

async function load(request: ReportRequest, id: number): Promise<ReturnType<Methods['load']>> {
  running?.abort();
  running = new AbortController();
  const { signal } = running;
  const rows = new ArrowRows();
  const failed = (reason: Failure['reason'], detail: string) =>
    signal.aborted ? 'superseded' : { failure: { reason, detail, requestId: '', rows: rows.rows } };
  let response: Response;
  try {
    response = await send(request, signal);
  } catch (error) {
    return failed('unreachable', String(error));
  }
  if (!response.ok || !response.body) {
    const failure = await failureOf(response);
    return signal.aborted ? 'superseded' : { failure };
  }
  const facts = factsOf(response.headers);
  const report = new Report(rows, facts, request.family);
  try {
    const bytes = await read(response.body, rows, (bytes) => {
      shown = report;
      post({ id, progress: { rows: rows.rows, bytes, columns: report.columns(), facts } });
    });
    if (signal.aborted) return 'superseded';
    shown = report;
    return { rows: rows.rows, bytes, facts };
  } catch (error) {
    if (!signal.aborted) shown = undefined;
    return failed('broken', String(error));
  }
}

/** @throws when the stream ends before it says that it is whole */
async function read(
  body: ReadableStream<Uint8Array>,
  rows: ArrowRows,
  onProgress: (bytes: number) => void,
): Promise<number> {
  const reader = body.getReader();
  let bytes = 0;
  let told = 0;
  for (;;) {
    const { done, value } = await reader.read();
    if (done) break;
    bytes += value.length;
    rows.push(value);
    const now = performance.now();
    if (rows.rows > 0 && now - told > progressMs) {
      told = now;
      onProgress(bytes);
    }
  }
  if (!rows.ended) throw new Error('the answer ended before its end');
  return bytes;
}
