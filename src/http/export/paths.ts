import { type Endpoint, endpoints } from '../../../catalog/breakdowns.ts';
import type { Catalog } from '../../../catalog/catalog.ts';
import { formatNames, type ReportFormatName } from '../../report/formats.ts';

/** A report as a file of one format: what tools that know only GET can read. */
export interface ExportedReport {
  readonly path: string;
  readonly endpoint: Endpoint;
  readonly format: ReportFormatName;
}

/** What a path ends in; csv first, which most tools read. */
export const exportFormats = ['csv', ...formatNames.filter((format) => format !== 'csv')] as const;

/** Every report of the contract in every format: `/v1/export/campaigns/device_date.csv`. Aliases have none. */
export function exportedReports(catalog: Catalog): ExportedReport[] {
  return endpoints(catalog)
    .filter(({ path }) => catalog.aliases[path] === undefined)
    .flatMap((endpoint) =>
      exportFormats.map((format) => ({ path: exportPath(endpoint.path, format), endpoint, format })),
    );
}

/** The path under which the report of an endpoint is exported. */
export function exportPath(endpoint: string, format: ReportFormatName): string {
  return `${endpoint.replace('/v1/', '/v1/export/').replace('/breakdowns/', '/')}.${format}`;
}
