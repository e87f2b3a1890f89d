import type { Breakdown } from '../../catalog/breakdowns.ts';
import { catalog } from '../../catalog/catalog.ts';
import type { Address } from '../../clickhouse/client.ts';
import type { ReadStatement } from '../../clickhouse/reader.ts';
import { compileReport, compileUnconfirmedDates } from '../../src/report/compile.ts';
import { planReport } from '../../src/report/plan.ts';
import type { Period } from '../data/network.ts';
import type { HttpRequest } from './http-client.ts';

/** A report that can be asked of the service, of ClickHouse and of a peer. */
export interface Report {
  readonly path: string;
  readonly breakdown: Breakdown;
  readonly account: string;
  readonly period: Period;
}

/** The report asked of a service: adtally with a login token, a peer with the account itself. */
export function ask(url: string, { path, period }: Report, headers: Record<string, string>): HttpRequest {
  return {
    url: `${url}${path}`,
    headers: { 'content-type': 'application/json', ...headers },
    body: JSON.stringify({ start_time: period.start, end_time: period.end }),
  };
}

/** The statement of the report that the service sends, asked of ClickHouse directly. */
export function askOwnStatement(address: Address, report: Report): HttpRequest {
  return askClickHouse(address, statementOf(report, 'json'));
}

/** All that the service asks ClickHouse for a report: the unconfirmed days, then the report. */
export function askOwnStatements(address: Address, report: Report): readonly HttpRequest[] {
  const { breakdown, account, period } = report;
  const dates = compileUnconfirmedDates(planReport(breakdown, account, period));
  return [
    askClickHouse(address, { ...dates, query: `${dates.query}\nFORMAT JSONEachRow` }),
    askOwnStatement(address, report),
  ];
}

/**
 * The same rows as anybody would ask ClickHouse for them: the statement of the report with FORMAT JSONEachRow,
 * written as ClickHouse does it by itself.
 */
export function askJsonEachRow(address: Address, report: Report): HttpRequest {
  const { query, params, settings } = plainStatement(report);
  return askClickHouse(address, { query: `${query}\nFORMAT JSONEachRow`, params, settings });
}

/** The same rows from another table, which has them in place of the rollup. */
export function askOtherTable(address: Address, report: Report, table: string): HttpRequest {
  const { query, params } = plainStatement(report);
  const other = query.replace(/FROM \w+_date AS r( FINAL)?/, `FROM ${table} AS r`);
  return askClickHouse(address, { query: `${other}\nFORMAT JSONEachRow`, params, settings: plainNumbers });
}

/** The same rows computed and thrown away: what is left of a report without format and transport. */
export function askNothingBack(address: Address, report: Report): HttpRequest {
  const { query, params, settings } = statementOf(report, 'ndjson');
  return askClickHouse(address, {
    query: query.replace('FORMAT JSONEachRow', 'FORMAT Null'),
    params,
    settings,
  });
}

const plainNumbers = { output_format_json_quote_64bit_integers: 0, output_format_json_quote_decimals: 0 };

/** The statement of a report without a FORMAT: no setting of the service's makes JSONEachRow any faster (tried). */
export function plainStatement(report: Report): ReadStatement {
  const { query, params } = statementOf(report, 'ndjson');
  return { query: query.replace(/\nFORMAT \w+$/, ''), params, settings: plainNumbers };
}

function statementOf({ breakdown, account, period }: Report, format: 'json' | 'ndjson'): ReadStatement {
  const envelope = { lastUpdateTime: '2026-01-01 00:00:00 UTC', unconfirmedDates: [] };
  return compileReport(catalog, planReport(breakdown, account, period), envelope, format);
}

function askClickHouse(address: Address, { query, params, settings }: ReadStatement): HttpRequest {
  const search = new URLSearchParams({ database: address.database });
  for (const [name, value] of Object.entries(params)) search.set(`param_${name}`, value);
  for (const [name, value] of Object.entries(settings)) search.set(name, String(value));
  return {
    url: `${address.url}/?${search}`,
    headers: { 'x-clickhouse-user': address.user, 'x-clickhouse-key': address.password },
    body: query,
  };
}
