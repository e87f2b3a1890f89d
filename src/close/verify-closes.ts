import { familyOf } from '../../catalog/breakdowns.ts';
import type { Catalog } from '../../catalog/catalog.ts';
import type { Store } from '../../clickhouse/client.ts';
import type { DayRange } from '../../clickhouse/consistency/verify-rollups.ts';
import { monthName, monthOf } from '../../clickhouse/months.ts';
import type { Reader, ReadStatement } from '../../clickhouse/reader.ts';
import { allShardsOf } from '../report/all-shards.ts';
import { readSettings } from '../report/compile.ts';
import { sourceParameters, sumsOfAll } from '../report/from-clause.ts';
import { type AccountMonth, canonicalText, digestOf, finestPlan } from './canonical-text.ts';
import { type Close, closesOf, manifestText } from './closes.ts';
import { readManifest } from './manifest.ts';
import type { PublicKey } from './signature.ts';

/** A revision whose rows are not those that were closed. */
export interface WrongClose {
  readonly account: string;
  /** `yyyy-mm` */
  readonly month: string;
  readonly revision: string;
  readonly what: string;
}

/**
 * Reads the rows of every revision of the months in a range again and compares them with its digest; and its sums, with
 * those of its adjustments, with the sums of today.
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
    if (found !== revision) wrong.push({ ...of, what: `its rows have the digest ${found}` });
    const manifest = await manifestFault(store, close, keys);
    if (manifest !== undefined) wrong.push({ ...of, what: `its manifest: ${manifest}` });
    for (const family of Object.keys(catalog.families)) {
      const statement = sumsStatement(catalog, family, { account, month, revision, routing });
      const sums = await reader.rows<{ what: string }>(statement);
      wrong.push(...sums.map(({ what }) => ({ ...of, what: `${family}: ${what}` })));
    }
  }
  return wrong;
}

/** What is wrong with the manifest of a close. */
async function manifestFault(
  store: Store,
  { account, month, revision, rows }: Close,
  keys: readonly PublicKey[] | undefined,
): Promise<string | undefined> {
  const text = (await manifestText(store, revision)) ?? '';
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

/** One row for each measure whose close and adjustments are not what today has. */
function sumsStatement(catalog: Catalog, family: string, which: AccountMonth): ReadStatement {
  const { revision = '', ...today } = which;
  const finest = finestPlan(catalog, family, today);
  const adjusted = { ...finest, adjusted: [revision] };
  const coarsest = { ...finest, breakdown: { ...finest.breakdown, dimensions: [] }, reads: [] };
  const sources = [finestPlan(catalog, family, which), adjusted, coarsest];
  const pairs = Object.keys(familyOf(catalog, family).measures).map(
    (name) =>
      `('${name}', toString(c.${name}), toString(a.${name}), toString(t.${name}), c.${name} + a.${name} = t.${name})`,
  );
  return {
    query: [
      "SELECT concat(m.1, ': ', m.2, ' closed and ', m.3, ' of adjustments, ', m.4, ' today') AS what",
      `FROM ${sources.map((plan, n) => `${sumsOfAll(plan)} AS ${'cat'[n]}`).join(' CROSS JOIN ')}`,
      `ARRAY JOIN [${pairs.join(', ')}] AS m WHERE NOT m.5`,
    ].join('\n'),
    params: sourceParameters(adjusted),
    settings: readSettings(adjusted),
  };
}
