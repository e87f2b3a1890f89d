import { type Handler, Hono, type MiddlewareHandler } from 'hono';
import * as z from 'zod';
import type { Links } from '../../accounts/links.ts';
import { InvalidRequest } from '../../report/invalid-request.ts';
import { RequestReader, withoutNulls } from '../../report/request.ts';
import type { AccountCache } from '../access/account-cache.ts';
import { requireJson } from '../report/request-body.ts';
import type { HttpEnv } from '../request/env.ts';
import { onPath } from '../request/on-path.ts';
import { Problem } from '../request/problems.ts';
import { linkOf } from './link-of.ts';
import { parametersOf } from './parameters.ts';
import { exportedReports } from './paths.ts';
import type { ExportDeps } from './routes.ts';

export interface LinkDeps extends ExportDeps {
  readonly body: MiddlewareHandler<HttpEnv>;
  readonly links: Links;
  readonly accounts: Pick<AccountCache, 'tokenOf'>;
}

/** The path that makes links to an export: `/v1/links/campaigns/device_date.csv`. */
function linkPath(exported: string): string {
  return exported.replace('/v1/export/', '/v1/links/');
}

/** For each export a path that makes links to it, for programs that cannot log in, which only a login token can ask. */
export function linkRoutes(deps: LinkDeps): Hono<HttpEnv> {
  const { authenticated, limited, body } = deps;
  const app = new Hono<HttpEnv>();
  for (const { path, endpoint } of exportedReports(deps.catalog)) {
    const from = linkPath(path);
    const answer = makeLink(deps, path, new RequestReader(deps.catalog, endpoint.breakdown));
    const rules = { allow: 'POST', family: endpoint.breakdown.family } as const;
    onPath(app, from, rules, authenticated, limited, requireJson, body, answer);
  }
  return app;
}

/** What the body has beside the fields of the report. */
export const linkExpiry = z.object({
  expires: z
    .union([z.iso.date(), z.iso.datetime({ offset: true })])
    .optional()
    .meta({
      description:
        'When the link expires: a day or a time within 366 days; in a week if absent, and never later than its token.',
      examples: ['2026-12-01', '2026-12-01T00:00:00Z'],
    }),
});

export const linkAnswer = z.strictObject({
  result: z.strictObject({
    link: z.string().meta({
      format: 'uri-reference',
      description: 'To be put behind the address of the service.',
      examples: [
        '/v1/export/campaigns.csv?start_time=2026-10-01&end_time=2026-10-31&link=3f2a91c07b5d.1796083200.6rUkM2yXw9tQvB0cZJ4hLfNs8aPdE1gKoTiYx5RqVnA',
      ],
    }),
    expires: z.string().meta({ format: 'date-time', examples: ['2026-12-01T00:00:00Z'] }),
  }),
});

/** Answers with a link to the report that the body asks for; `expires` is the only field more. */
function makeLink(
  { links, accounts, catalog }: LinkDeps,
  path: string,
  requests: RequestReader,
): Handler<HttpEnv> {
  return function linkHandler(c) {
    const fields = withoutNulls(c.get('body'));
    requests.read(fields, Object.keys(linkExpiry.shape));
    const id = c.get('token');
    const token = id === undefined ? undefined : accounts.tokenOf(id);
    if (token === undefined) throw new Error('the token of a request is not known');
    const address = `${path}?${parametersOf(Object(fields))}`;
    const made = linkOf({ links, catalog }, token, address, expiryOf(fields));
    if (made === undefined) throw new Problem('not_found', 'this service makes no links');
    const { link, expires } = made;
    return c.json({ result: { link, expires: expires.toISOString().replace('.000', '') } });
  };
}

/** @throws {InvalidRequest} */
function expiryOf(fields: unknown): Date | undefined {
  const { success, data } = linkExpiry.safeParse(fields);
  if (!success) throw new InvalidRequest('expires', 'must be a time such as 2027-01-31T12:00:00Z');
  return data.expires === undefined ? undefined : new Date(data.expires);
}
