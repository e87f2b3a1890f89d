import { createHash, type KeyObject } from 'node:crypto';
import { text } from 'node:stream/consumers';
import * as z from 'zod';
import type { Catalog } from '../../catalog/catalog.ts';
import { monthName } from '../../clickhouse/months.ts';
import type { Reader } from '../../clickhouse/reader.ts';
import { jsonIn } from '../../ingest/input/text.ts';
import { compileExplanation } from '../report/explain/compile-explanation.ts';
import { explainedRow } from '../report/explain/explain-request.ts';
import type { ShardRouting } from '../report/plan.ts';
import type { Close } from './closes.ts';
import { daysOfMonth } from './month.ts';
import { checkSignature, type PublicKey, publicKeyOf, signatureOf } from './signature.ts';

interface ManifestOptions {
  readonly timezone: string;
  readonly routing?: ShardRouting | undefined;
  /** Absent: nobody signs. */
  readonly key?: KeyObject | undefined;
}

/**
 * What a close says of itself, for those who keep it: a line of JSON, and a line with its signature if there is a key. Counts and
 * amounts are text, as in the rows. The engine writes what each family is made of, and sees that it adds up.
 */
export async function manifestOf(
  reader: Reader,
  catalog: Catalog,
  close: Close,
  { timezone, routing, key }: ManifestOptions,
): Promise<string> {
  const { account, month, revision, previous, closed_at, rows, unconfirmed, open_rejects } = close;
  const { start: start_time, end: end_time } = daysOfMonth(month);
  const kid = key && publicKeyOf(key).kid;
  const head = {
    account_id: account,
    month: monthName(month),
    start_time,
    end_time,
    timezone,
    revision,
    previous: previous || null,
    closed_at: `${closed_at.replace(' ', 'T')}Z`,
    rows,
    unconfirmed,
    open_rejects,
    signed_by: kid ?? null,
  };
  const families: string[] = [];
  for (const family of Object.keys(catalog.families)) {
    const row = explainedRow(catalog, family, account, { start_time, end_time, row: {} }, routing);
    const { query, params, settings } = compileExplanation(row);
    const statement = `SELECT result.row AS totals, result.parts AS parts FROM (${query})\nFORMAT JSONEachRow`;
    const quoted = { output_format_json_quote_decimals: 1, output_format_json_quote_64bit_integers: 1 };
    const written = await reader.stream({ query: statement, params, settings: { ...settings, ...quoted } });
    families.push(`${JSON.stringify(family)}:${(await text(written)).trimEnd()}`);
  }
  const line = `${JSON.stringify(head).slice(0, -1)},"families":{${families.join()}}}`;
  return key && kid ? `${line}\n${signatureOf(Buffer.from(line), key, kid)}\n` : `${line}\n`;
}

const said = z.looseObject({
  account_id: z.string(),
  month: z.string(),
  revision: z.string().regex(/^[0-9a-f]{64}$/),
  rows: z.int(),
  signed_by: z.string().nullable(),
});

/** The first line of rows has an account and days. */
const mostHeadBytes = 16_384;

export interface CheckedManifest extends z.infer<typeof said> {
  /** The key that signed it, where keys were given. */
  readonly signer?: string;
}

/**
 * What a manifest says, and, with keys, who signed it.
 * @throws saying what is wrong with it
 */
export function readManifest(manifest: Buffer, keys?: readonly PublicKey[]): CheckedManifest {
  const [line = '', signature = '', ...more] = manifest.toString().split('\n');
  const of = said.safeParse(jsonIn(line)).data;
  // Bytes that are no UTF-8 are lost in text.
  const isWhole = Buffer.from(manifest.toString()).equals(manifest) && manifest.at(-1) === 0x0a;
  if (!of || !isWhole || more.length > 1 || more.join('') !== '')
    throw new Error('it is no manifest of a close');
  if ((signature !== '') !== (of.signed_by !== null))
    throw new Error('its signature is missing, or not its own');
  if (!keys) return of;
  if (signature === '') throw new Error('it is not signed');
  const signer = checkSignature(Buffer.from(line), signature, keys);
  if (signer !== of.signed_by) throw new Error(`it says that ${of.signed_by} signed it, and ${signer} did`);
  return { ...of, signer };
}

/**
 * Checks that rows, as `closes rows` prints them, are those of a manifest, and, with keys, that one of them signed it.
 * @throws saying what does not fit
 */
export async function checkManifest(
  rows: AsyncIterable<Uint8Array>,
  manifest: Buffer,
  keys?: readonly PublicKey[],
): Promise<CheckedManifest> {
  const of = readManifest(manifest, keys);
  const hash = createHash('sha256');
  let first = Buffer.alloc(0);
  for await (const bytes of rows) {
    hash.update(bytes);
    if (first.length < mostHeadBytes) first = Buffer.concat([first, bytes]);
  }
  const digest = hash.digest('hex');
  if (digest !== of.revision) throw new Error(`the rows have the sha256 ${digest}, not ${of.revision}`);
  const head = Object(jsonIn(first.subarray(0, first.indexOf(0x0a)).toString()));
  if (head.account_id !== of.account_id || head.month !== of.month)
    throw new Error(`the rows are those of ${head.account_id} ${head.month}`);
  return of;
}
