import { patientFetch } from '../request/patient-fetch.ts';

/** What the service answers to a caller. */
export interface OwnAnswer {
  readonly ok: boolean;
  readonly text: string;
}

/** The caller of a tool. */
export interface Asker {
  /** The header with the login token. */
  readonly authorization: string;
  /** Aborted when the caller has left. */
  readonly signal: AbortSignal;
}

/**
 * Asks this very service over HTTP, as the caller could: so a tool answers as the endpoint does, and the token, the
 * limits and the gate apply as to any request.
 * @param url of the service, once it listens
 */
export async function askOwnService(
  url: string,
  path: string,
  body: object,
  { authorization, signal }: Asker,
): Promise<OwnAnswer> {
  const headers = { authorization, 'content-type': 'application/json', accept: 'application/json' };
  const init = { method: 'POST', headers, body: JSON.stringify(body), signal };
  const response = await patientFetch(`${url}${path}`, init);
  return { ok: response.ok, text: await response.text() };
}

/** An address that reaches what listens on `url`, which may be every address of the machine. */
export function reachable(url: string): string {
  return url.replace('//0.0.0.0:', '//127.0.0.1:').replace('//[::]:', '//[::1]:');
}
