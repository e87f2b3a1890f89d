import { readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { catalog } from '../../catalog/catalog.ts';
import { openApiDocument } from '../../src/http/openapi/document.ts';
import type { JsonSchema, Limits } from '../../src/http/openapi/model.ts';

const file = new URL('src/reports.ts', import.meta.url);

/** The rows of every report as TypeScript, from what `/openapi.json` says of them. */
export function reportTypes(): string {
  // None of the limits is in a type.
  const limits: Limits = {
    requests: 0,
    windowSeconds: 0,
    maxBodyBytes: 0,
    timeoutSeconds: 0,
    reports: { most: 0, mostOfAccount: 0, waitSeconds: 0 },
    leastPace: { bytesPerSecond: 0, seconds: 0 },
    sendTimeoutSeconds: 0,
  };
  const { paths, components } = openApiDocument(catalog, limits);
  const reports = Object.entries(paths).flatMap(([path, { post }]) => {
    const schema = components.schemas[`${pascalCase(post?.operationId ?? '')}Row`];
    const [family = '', breakdown] = path.replace('/v1/', '').split('/breakdowns/');
    return schema ? [{ family, breakdown, schema }] : [];
  });
  const bases = reports.filter(({ breakdown }) => breakdown === undefined);
  return [
    '// Written from the OpenAPI document by npm run client-types',
    '',
    ...bases.flatMap(({ family, schema }) => [
      `/** A row of every report of ${family}. */`,
      `export interface ${pascalCase(family)}Row {`,
      ...fields(schema),
      '}',
      '',
    ]),
    '/** The rows of each report, by its name. */',
    'export interface Rows {',
    ...reports.flatMap(({ family, breakdown, schema }) => {
      const base = bases.find((each) => each.family === family)?.schema.properties ?? {};
      const more = Object.keys(schema.properties ?? {}).filter((id) => !Object.hasOwn(base, id));
      const row = [
        `${pascalCase(family)}Row`,
        ...(more.length ? [`{ ${more.map(textField).join(' ')} }`] : []),
      ];
      return `  ${breakdown ? `'${family}/${breakdown}'` : family}: ${row.join(' & ')};`;
    }),
    '}',
    '',
    '/** As in the path of its export: `campaigns/device_date`. */',
    'export type ReportName = keyof Rows;',
    '',
  ].join('\n');
}

const textField = (id: string): string => `${id}: string;`;

function fields({ properties = {} }: JsonSchema): string[] {
  return Object.entries(properties).flatMap(([id, { description, type }]) => [
    `  /** ${description} */`,
    `  ${id}: ${type === 'string' ? 'string' : 'number'};`,
  ]);
}

function pascalCase(name: string): string {
  return name.replace(/(^|_)(.)/g, (_, _separator, letter: string) => letter.toUpperCase());
}

/** What stands there now. */
export const writtenTypes = (): string => readFileSync(file, 'utf8');

if (process.argv[1] === fileURLToPath(import.meta.url)) writeFileSync(file, reportTypes());
