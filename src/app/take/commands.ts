import { idsOf } from '../state/fields.ts';
import { bodyOf, filePathOf, pathOf } from '../state/request.ts';
import { askedOf, type Shown } from './download.ts';

/** The same report elsewhere. The token is never part of it: it stands in the variable TOKEN. */
export const commands = { curl, python, duckdb };

function curl(shown: Shown, today: string, origin: string): string {
  return [
    `curl -sS --fail --compressed ${shell(origin + pathOf(shown.state))} \\`,
    `  -H "authorization: Bearer $TOKEN" -H 'content-type: application/json' -H 'accept: text/csv' \\`,
    `  -d ${shell(JSON.stringify(askedOf(shown, today)))} -o report.csv`,
  ].join('\n');
}

function python(shown: Shown, today: string, origin: string): string {
  // JSON never has three quotation marks in a row, which would end the text.
  return [
    'import json, os, urllib.request',
    '',
    `body = r"""${JSON.stringify(askedOf(shown, today), null, 2)}"""`,
    'request = urllib.request.Request(',
    `    ${JSON.stringify(origin + pathOf(shown.state))},`,
    '    body.encode(),',
    '    {"authorization": "Bearer " + os.environ["TOKEN"], "content-type": "application/json"},',
    ')',
    'with urllib.request.urlopen(request) as answer:',
    '    rows = json.load(answer)["result"]["rows"]',
    'print(len(rows), "rows")',
  ].join('\n');
}

function duckdb({ state, ids }: Shown, today: string, origin: string): string {
  const { filters = {}, compare_to, ...fields } = bodyOf(state, today);
  const compared = typeof compare_to === 'object' ? Object.values(compare_to).join('/') : compare_to;
  const parameters = new URLSearchParams({
    ...fields,
    ...(compared && { compare_to: compared }),
    metrics: state.metrics.join(','),
  });
  if (ids) parameters.set('ids', 'true');
  for (const [field, values] of Object.entries(filters)) {
    for (const value of values) parameters.append(`filters.${field}`, value);
  }
  const isInFile = ids || ![...idsOf(state.family).values()].includes(state.sort?.column ?? '');
  const sort = isInFile ? state.sort : undefined;
  return [
    'INSTALL httpfs; LOAD httpfs;',
    "CREATE OR REPLACE SECRET adtally (TYPE http, EXTRA_HTTP_HEADERS MAP {'Authorization': 'Bearer ' || getenv('TOKEN')});",
    `SELECT * FROM read_parquet(${sql(`${origin}${filePathOf(state, 'export')}.parquet?${parameters}`)})`,
    ...(sort ? [`ORDER BY ${sort.column}${sort.descending ? ' DESC' : ''}`] : []),
  ]
    .join('\n')
    .concat(';');
}

function sql(text: string): string {
  return `'${text.replaceAll("'", "''")}'`;
}

function shell(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}
