import { Hono, type MiddlewareHandler } from 'hono';
import type { ReportDeps } from '../report/handler.ts';
import type { HttpEnv } from '../request/env.ts';
import { onPath } from '../request/on-path.ts';
import { requireHttp11 } from '../server/http-version.ts';
import { exportReport } from './export-report.ts';
import { exportedReports } from './paths.ts';

export interface ExportDeps extends ReportDeps {
  readonly authenticated: MiddlewareHandler<HttpEnv>;
  readonly limited: MiddlewareHandler<HttpEnv>;
}

/** Every report as a file, for tools that know GET: `/v1/export/campaigns/device_date.csv?start_time=…&end_time=…`. */
export function exportRoutes(deps: ExportDeps): Hono<HttpEnv> {
  const { authenticated, limited } = deps;
  const app = new Hono<HttpEnv>();
  for (const exported of exportedReports(deps.catalog)) {
    const { path, endpoint } = exported;
    const { conditional, answer } = exportReport(deps, exported);
    onPath(app, path, { allow: 'GET, HEAD', family: endpoint.breakdown.family }, () => {
      app.get(path, requireHttp11, authenticated, conditional, limited, answer);
    });
  }
  return app;
}
