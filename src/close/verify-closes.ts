import type { Catalog } from '../../catalog/catalog.ts';
import type { Store } from '../../clickhouse/client.ts';
import type { DayRange } from '../../clickhouse/consistency/verify-rollups.ts';
import { monthName, monthOf } from '../../clickhouse/months.ts';
import type { Reader } from '../../clickhouse/reader.ts';
import { allShardsOf } from '../report/all-shards.ts';
import { canonicalText, digestOf } from './canonical-text.ts';
import { type Close, closesOf, manifestText } from './closes.ts';
import { readManifest } from './manifest.ts';
import type { PublicKey } from './signature.ts';

/** A revision whose rows or manifest are not those that were closed. */
export interface WrongClose {
  readonly account: string;
  /** `yyyy-mm` */
  readonly month: string;
  readonly revision: string;
  readonly fault: 'rows' | 'manifest';
  readonly what: string;
}

/**
 * Reads the rows of every revision of the months in a range again and compares them with its digest, and checks its
 * manifest.
 * @param keys one of them must have signed what is signed; absent: signatures are not checked
 */
export async function verifyCloses(
  store: Store,
  reader: Reader,
  catalog: Catalog,
  { from, to }: DayRange,
  keys?: readonly PublicKey[],
): Promise<WrongClose[]> {
  const routing = await allShardsOf(store);
  const closes = await closesOf(store, { from: monthOf(from), to: monthOf(to) });
  const wrong: WrongClose[] = [];
  const once = new Map(closes.map((close) => [`${close.revision} ${close.month} ${close.account}`, close]));
  for (const close of once.values()) {
    const { account, month, revision, unconfirmed } = close;
    const text = canonicalText(reader, catalog, { account, month, revision, routing }, unconfirmed);
    const found = await digestOf(text);
    const of = { account, month: monthName(month), revision };
    if (found !== revision) wrong.push({ ...of, fault: 'rows', what: `its rows have the digest ${found}` });
    const manifest = await manifestFault(store, close, keys);
    if (manifest !== undefined) wrong.push({ ...of, fault: 'manifest', what: `its manifest: ${manifest}` });
  }
  return wrong;
}

/** What is wrong with the manifest of a close. */
async function manifestFault(
  store: Store,
  { account, month, revision, rows }: Close,
  keys: readonly PublicKey[] | undefined,
): Promise<string | undefined> {
  const text = (await manifestText(store, { account, revision })) ?? '';
  try {
    const unsigned = readManifest(Buffer.from(text));
    const said = unsigned.signed_by === null ? unsigned : readManifest(Buffer.from(text), keys);
    const isOf = said.account_id === account && said.month === monthName(month);
    return isOf && said.revision === revision && said.rows === rows
      ? undefined
      : 'it is that of another close';
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}
