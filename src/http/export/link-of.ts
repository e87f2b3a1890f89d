import type { Catalog } from '../../../catalog/catalog.ts';
import { defaultLinkMs, type Links, linkParameter, maxLinkMs } from '../../accounts/links.ts';
import type { StoredToken } from '../../accounts/tokens.ts';
import { InvalidRequest } from '../../report/invalid-request.ts';
import { RequestReader } from '../../report/request.ts';
import { fieldsOf, longestAddress, parametersIn } from './parameters.ts';
import { exportedReports } from './paths.ts';

/**
 * An address of an export as a link, for a week unless `expires` says otherwise, and no longer than its token; undefined where
 * links are not set up.
 * @throws {InvalidRequest} when there is no such export, the time is past or more than 366 days away, or nobody could open the link
 */
export function linkOf(
  { links, catalog }: { readonly links: Links; readonly catalog: Catalog },
  token: Pick<StoredToken, 'id' | 'hash' | 'expires'>,
  address: string,
  expires: Date | undefined,
): { link: string; expires: Date } | undefined {
  const base = 'http://adtally';
  const asked = new URL(URL.canParse(address, base) ? address : base, base);
  const exported = exportedReports(catalog).find(({ path }) => path === asked.pathname);
  if (!exported || asked.searchParams.has(linkParameter)) {
    throw new InvalidRequest(
      'address',
      'must be the path of an export with its parameters, such as /v1/export/campaigns.csv?start_time=2026-10-01&end_time=2026-10-31',
    );
  }
  new RequestReader(catalog, exported.endpoint.breakdown).read(fieldsOf(parametersIn(asked)));
  const now = Date.now();
  const until = new Date(Math.floor((expires?.getTime() ?? now + defaultLinkMs) / 1000) * 1000);
  if (+until <= now) throw new InvalidRequest('expires', 'must not be in the past');
  if (+until > now + maxLinkMs) throw new InvalidRequest('expires', 'must be within 366 days');
  const ends = token.expires === null ? until : new Date(Math.min(+until, Date.parse(token.expires)));
  const link = links.make(token, address, ends);
  if (link === undefined) return undefined;
  if (link.length > longestAddress) {
    throw new InvalidRequest(
      undefined,
      `the report has too many filters for a link, whose address has at most ${longestAddress} characters`,
    );
  }
  return { link, expires: ends };
}
