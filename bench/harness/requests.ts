import type { Breakdown } from '../../catalog/breakdowns.ts';
import { catalog } from '../../catalog/catalog.ts';
import type { Address } from '../../clickhouse/client.ts';
import { parameterText, type ReadStatement } from '../../clickhouse/reader.ts';
import { compileReport, compileUnconfirmedDates } from '../../src/report/compile.ts';
import { planReport } from '../../src/report/plan.ts';
import type { Period } from '../data/network.ts';
import type { HttpRequest } from './http-client.ts';

/** A report that can be requested from the service, from ClickHouse and from a peer. */
export interface Report {
  readonly path: string;
  readonly breakdown: Breakdown;
  readonly account: string;
  readonly period: Period;
  /** Optional fields of the body; only asked of the service. */
  readonly options?: Readonly<Record<string, unknown>>;
}

/** A report requested from a service: adtally gets a login token in `headers`, a peer the account. */
export function reportRequest(
  url: string,
  { path, period, options }: Report,
  headers: Record<string, string>,
): HttpRequest {
  return {
    url: `${url}${path}`,
    headers: { 'content-type': 'application/json', ...headers },
    body: JSON.stringify({ start_time: period.start, end_time: period.end, ...options }),
  };
}

/** The statement that the service sends for the report, sent to ClickHouse directly. */
export function statementRequest(address: Address, report: Report): HttpRequest {
  return clickhouseRequest(address, statementOf(report, 'json'));
}

/** All statements that the service sends for a report: the unconfirmed days, then the report. */
export function statementRequests(address: Address, report: Report): readonly HttpRequest[] {
  const { breakdown, account, period } = report;
  const dates = compileUnconfirmedDates(planReport(catalog, breakdown, account, period));
  return [
    clickhouseRequest(address, { ...dates, query: `${dates.query}\nFORMAT JSONEachRow` }),
    statementRequest(address, report),
  ];
}

/**
 * The same rows the usual way: the statement of the report with FORMAT JSONEachRow and the settings of a plain query.
 */
export function jsonEachRowRequest(address: Address, report: Report): HttpRequest {
  const { query, params, settings } = plainStatement(report);
  return clickhouseRequest(address, { query: `${query}\nFORMAT JSONEachRow`, params, settings });
}

/** The same rows from a view in place of the rollup. */
export function viewRequest(address: Address, report: Report, view: string): HttpRequest {
  const { query, params } = plainStatement(report);
  const other = query.replace(/FROM \w+_date AS r(?: FINAL)? (?:PRE)?WHERE/, `FROM ${view} AS r WHERE`);
  return clickhouseRequest(address, {
    query: `${other}\nFORMAT JSONEachRow`,
    params,
    settings: plainNumbers,
  });
}

/** The same rows computed and discarded: the cost of a report without format and transport. */
export function discardedRowsRequest(address: Address, report: Report): HttpRequest {
  const { query, params, settings } = statementOf(report, 'ndjson');
  return clickhouseRequest(address, {
    query: query.replace('FORMAT JSONEachRow', 'FORMAT Null'),
    params,
    settings,
  });
}

const plainNumbers = { output_format_json_quote_64bit_integers: 0, output_format_json_quote_decimals: 0 };

/** The statement of a report without a FORMAT. None of the service's settings makes JSONEachRow faster (tried). */
export function plainStatement(report: Report): ReadStatement {
  const { query, params } = statementOf(report, 'ndjson');
  return { query: query.replace(/\nFORMAT \w+$/, ''), params, settings: plainNumbers };
}

/** The statement of the unconfirmed days without a FORMAT. */
export function plainDatesStatement({ breakdown, account, period }: Report): ReadStatement {
  return compileUnconfirmedDates(planReport(catalog, breakdown, account, period));
}

function statementOf({ breakdown, account, period }: Report, format: 'json' | 'ndjson'): ReadStatement {
  const envelope = { lastUpdateTime: '2026-01-01 00:00:00 UTC', unconfirmedDates: [] };
  return compileReport(planReport(catalog, breakdown, account, period), envelope, format);
}

function clickhouseRequest(address: Address, { query, params, settings }: ReadStatement): HttpRequest {
  const search = new URLSearchParams({ database: address.database });
  for (const [name, value] of Object.entries(params)) search.set(`param_${name}`, parameterText(value));
  for (const [name, value] of Object.entries(settings)) search.set(name, String(value));
  return {
    url: `${address.url}/?${search}`,
    headers: { 'x-clickhouse-user': address.user, 'x-clickhouse-key': address.password },
    body: query,
  };
}
