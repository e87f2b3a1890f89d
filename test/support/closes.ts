import type { KeyObject } from 'node:crypto';
import { expect } from 'vitest';
import { catalog } from '../../catalog/catalog.ts';
import type { Store } from '../../clickhouse/client.ts';
import { Links } from '../../src/accounts/links.ts';
import { canonicalText } from '../../src/close/canonical-text.ts';
import { type Close, closesOf } from '../../src/close/closes.ts';
import type { PublicKey } from '../../src/close/signature.ts';
import { verifyCloses } from '../../src/close/verify-closes.ts';
import { withReader } from '../../src/close/with-reader.ts';
import { commandLine } from '../../src/operations/audit.ts';
import { closeMonths } from '../../src/operations/closes.ts';
import { perform } from '../../src/operations/operation.ts';
import { allShardsOf } from '../../src/report/all-shards.ts';
import { reportFormats } from '../../src/report/formats.ts';
import { readers } from './readers.ts';
import type { TestService } from './service.ts';
import type { TestStore } from './store.ts';

export const march = { start_time: '2026-03-01', end_time: '2026-03-31' };
const everyDay = { from: '1970-01-01', to: '2149-06-06' };

/** Closes a month. @throws naming accounts that are not ready, when all others are closed */
export async function close(
  store: Store,
  month: string,
  account: string | undefined,
  more: { readonly anyway?: boolean; readonly signingKey?: KeyObject } = {},
): Promise<void> {
  const { anyway = false, signingKey } = more;
  const context = {
    store,
    by: commandLine(),
    links: new Links(() => undefined),
    answerTrustMs: 0,
    signingKey,
  };
  const all = account === undefined;
  const { unready } = await perform(closeMonths, context, { month, account, all, anyway });
  const left = unready.map((each) => `${each.account} ${month} is not closed: ${each.reasons.join(', ')}`);
  if (left.length > 0) throw new Error(left.join('\n'));
}

export function useCloses(db: TestStore, service: TestService) {
  /** What its revision is the digest of. */
  async function textOf(closed: Close): Promise<string> {
    return withReader(db.store, async (reader) => {
      const chunks = [];
      const which = { ...closed, routing: await allShardsOf(db.store) };
      for await (const bytes of canonicalText(reader, catalog, which, closed.unconfirmed)) chunks.push(bytes);
      return Buffer.concat(chunks).toString();
    });
  }

  /** The answer without the time of the request, and with what other formats than JSON say in headers. */
  async function ask(
    path: string,
    account: string,
    body: object,
    accept = 'application/json',
  ): Promise<string> {
    const response = await service.post(path, account, body, { accept });
    const answer = Buffer.from(await response.arrayBuffer());
    expect(response.status, answer.toString()).toBe(200);
    const [name] = Object.entries(reportFormats).find(([, { mediaType }]) => mediaType === accept) ?? [];
    // They are the same rows in other batches.
    const table = name === 'arrow' || name === 'parquet' ? await readers[name](answer) : undefined;
    const told = ['adtally-unconfirmed-revenue-dates', 'adtally-totals', 'adtally-row-count'];
    return [
      ...told.map((name) => response.headers.get(name)),
      table ? JSON.stringify(table) : answer.toString('latin1').replace(/"last_update_time":"[^"]*",/, ''),
    ].join('\n');
  }

  return {
    /** Newest first. */
    of: (account: string) => closesOf(db.store, { account }),
    verified: (keys?: readonly PublicKey[]) =>
      withReader(db.store, (reader) => verifyCloses(db.store, reader, catalog, everyDay, keys)),
    textOf,
    ask,
  };
}
