import { ArrowRows } from '../arrow/arrow.ts';
import { send } from './asked.ts';
import { factsOf } from './headers.ts';
import type { Asked, Call, Message, Methods, ReportRequest } from './protocol.ts';
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
  values: async ({ request, ...options }) => {
    const report = await choices(request);
    return 'failure' in report ? report : { result: report.result.values(options) };
  },
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

let offered: { readonly key: string; readonly report: Promise<Asked<Report>> } | undefined;

/** A small report beside the one shown, whose texts are offered to choose from; the last one is kept. */
async function choices(request: ReportRequest): Promise<Asked<Report>> {
  const key = JSON.stringify(request);
  if (offered?.key !== key) offered = { key, report: ask(request, () => {}) };
  const report = await offered.report;
  if ('failure' in report && offered?.key === key) offered = undefined;
  return report;
}

async function load(request: ReportRequest, id: number): Promise<ReturnType<Methods['load']>> {
  running?.abort();
  running = new AbortController();
  const { signal } = running;
  const onProgress = (report: Report, bytes: number) => {
    shown = report;
    const { rows, facts } = report;
    post({ id, progress: { rows: rows.rows, bytes, columns: report.columns(), facts } });
  };
  const answer = await ask(request, onProgress, signal);
  if (signal.aborted) return 'superseded';
  shown = 'result' in answer ? answer.result : undefined;
  if ('failure' in answer) return answer;
  const { rows, facts } = answer.result;
  return { result: { rows: rows.rows, facts } };
}

/** @param onProgress hears of rows while others arrive */
async function ask(
  { url, key, body, family }: ReportRequest,
  onProgress: (report: Report, bytes: number) => void,
  signal?: AbortSignal,
): Promise<Asked<Report>> {
  const answer = await send(url, { key }, { body, accept: 'application/vnd.apache.arrow.stream', signal });
  if ('failure' in answer) return answer;
  const rows = new ArrowRows();
  const report = new Report(rows, factsOf(answer.result.headers), family);
  try {
    await read(answer.result, rows, (bytes) => onProgress(report, bytes));
    return { result: report };
  } catch {
    return { failure: { reason: 'broken', rows: rows.rows } };
  }
}

/** @throws when the stream ends before it says that it is whole */
async function read({ body }: Response, rows: ArrowRows, onProgress: (bytes: number) => void): Promise<void> {
  const reader = body?.getReader();
  let bytes = 0;
  let told = 0;
  for (;;) {
    const value = (await reader?.read())?.value;
    if (!value) break;
    bytes += value.length;
    rows.push(value);
    const now = performance.now();
    if (rows.rows > 0 && now - told > progressMs) {
      told = now;
      onProgress(bytes);
    }
  }
  if (!rows.ended) throw new Error('the answer ended before its end');
}
