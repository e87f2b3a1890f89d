import { send } from '../rows/asked.ts';
import type { Asked } from '../rows/protocol.ts';
import { bodyOf, pathOf } from '../state/request.ts';
import type { Opened } from '../state/session.ts';
import type { State } from '../state/state.ts';

export const downloadFormats = {
  csv: 'text/csv',
  xlsx: 'application/vnd.openxmlformats-officedocument.spreadsheetml.sheet',
  parquet: 'application/vnd.apache.parquet',
  ndjson: 'application/x-ndjson',
} as const;

export type DownloadFormat = keyof typeof downloadFormats;

/** What is taken along. */
export interface Shown {
  readonly state: State;
  /** Whether rows show ids, because names do not tell them apart. */
  readonly ids: boolean;
}

/** What a download or a command asks for: every row with the chosen columns, filters and order. */
export function askedOf({ state, ids }: Shown, today: string) {
  return {
    ...bodyOf(state, today),
    metrics: state.metrics,
    ...(ids && { ids }),
    ...(state.sort && {
      order_by: [
        {
          // Weeks and months that begin later end later.
          field: state.sort.column === 'end_time' ? 'start_time' : state.sort.column,
          direction: state.sort.descending ? 'desc' : 'asc',
        },
      ],
    }),
  };
}

/** Saves the report as a file, and says its name; one that breaks off is not saved. */
export async function download(
  shown: Shown,
  session: Opened,
  format: DownloadFormat,
  { onProgress, signal }: { onProgress: (bytes: number) => void; signal: AbortSignal },
): Promise<Asked<string>> {
  const body = { ...askedOf(shown, session.today), ...(format === 'xlsx' && { totals: true }) };
  const accept = downloadFormats[format];
  const answer = await send(pathOf(shown.state), session, { body, accept, signal });
  if ('failure' in answer) return answer;
  const { result: response } = answer;
  const name =
    /filename="([^"]+)"/.exec(response.headers.get('content-disposition') ?? '')?.[1] ?? `report.${format}`;
  try {
    save(await collect(response, accept, onProgress), name);
    return { result: name };
  } catch {
    return { failure: { reason: 'broken' } };
  }
}

async function collect({ body }: Response, type: string, onProgress: (bytes: number) => void): Promise<Blob> {
  let bytes = 0;
  const counted = new TransformStream<Uint8Array<ArrayBuffer>, Uint8Array<ArrayBuffer>>({
    transform(chunk, controller) {
      bytes += chunk.length;
      onProgress(bytes);
      controller.enqueue(chunk);
    },
  });
  return new Blob([await new Response(body?.pipeThrough(counted)).blob()], { type });
}

function save(file: Blob, name: string): void {
  const link = document.createElement('a');
  link.href = URL.createObjectURL(file);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
}
