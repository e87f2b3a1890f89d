import type { Clock } from '../state/session.ts';
import type { Facts, Failure } from './protocol.ts';

/** What the headers of a report say, as docs/ and OpenAPI describe them. */
export function factsOf(headers: Headers): Facts {
  const loaded = Date.parse(headers.get('last-modified') ?? '');
  const compared = quoted(headers.get('adtally-compare-to'))[0]?.split('/');
  const [, account = ''] = /^%"(.*)"$/.exec(headers.get('adtally-account') ?? '') ?? [];
  return {
    account: decodeURIComponent(account),
    currency: headers.get('adtally-currency') ?? undefined,
    asked: quoted(headers.get('adtally-last-update-time'))[0] ?? '',
    loadedAt: Number.isFinite(loaded) ? loaded : undefined,
    unconfirmed: quoted(headers.get('adtally-unconfirmed-revenue-dates')).map((run) => {
      const [first = '', last = first] = run.split('/');
      return [first, last] as const;
    }),
    ...(compared?.[0] && { comparedTo: [compared[0], compared[1] ?? compared[0]] as const }),
  };
}

/**
 * From the time of a request by both clocks; all zones are whole quarters of an hour ahead of UTC or behind it.
 * @param date of an answer that came at once
 */
export function clockOf(asked: string, date: string | null): Clock | undefined {
  const [day, time, zone = ''] = asked.split(' ');
  const quarter = 15 * 60_000;
  const ahead = Math.round((Date.parse(`${day}T${time}Z`) - Date.parse(date ?? '')) / quarter) * quarter;
  return Number.isFinite(ahead) ? { zone, ahead } : undefined;
}

/** The quoted texts of a header, which is a list of them or of names with them. */
function quoted(header: string | null): string[] {
  return [...(header ?? '').matchAll(/"([^"]*)"/g)].map(([, text = '']) => text);
}

/** What an answer other than a report means. */
export async function failureOf(response: Response): Promise<Failure> {
  const problem = await problemOf(response);
  const { status } = response;
  const retry = Number(response.headers.get('retry-after'));
  return {
    reason:
      status === 401 ? 'unauthorized' : status === 429 ? 'limited' : status < 500 ? 'refused' : 'failed',
    detail: problem.detail,
    requestId: problem.requestId || (response.headers.get('x-request-id') ?? ''),
    ...(retry > 0 && { retrySeconds: retry }),
  };
}

async function problemOf(response: Response): Promise<{ detail: string; requestId: string }> {
  const text = await response.text().catch(() => '');
  try {
    const { detail, request_id: requestId } = JSON.parse(text) as Record<string, unknown>;
    return { detail: String(detail ?? ''), requestId: String(requestId ?? '') };
  } catch {
    return { detail: `${response.status} ${response.statusText}`.trim(), requestId: '' };
  }
}
