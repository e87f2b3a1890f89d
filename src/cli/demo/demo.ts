import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { type Store, select } from '../../../clickhouse/client.ts';
import { LocalFile } from '../../../ingest/input/local-file.ts';
import { loadLookupList, lookupLists } from '../../../ingest/lists/lookup-lists.ts';
import { loadEvents } from '../../../ingest/load/load-events.ts';
import { createToken, listTokens } from '../../accounts/tokens.ts';
import { eventProgress } from '../ingest/progress.ts';
import { sampleAccounts, writeSample } from './sample.ts';

/** Where the demo keeps its sample: for people to look at, and for an interrupted load to continue from. */
const sampleFolder = 'sample';

/** Whose token is made anew by whoever did not keep those of the first start. */
export const newTokenAccount = 'northwind-outdoor';

export interface DemoAccount {
  readonly account: string;
  readonly token: string;
}

/**
 * Fills an empty database with the sample, through the real loader, and creates a token for each of its accounts.
 * Returns the tokens; none when there are other events or the sample is already loaded.
 */
export async function loadDemo(
  store: Store,
  options: { dataDir: string; now: Date; say: (text: string) => void },
): Promise<DemoAccount[]> {
  const folder = join(options.dataDir, sampleFolder);
  const [row] = await select<{ empty: number }>(store, 'SELECT count() = 0 AS empty FROM events');
  const begun = existsSync(folder);
  // Tokens are created last: a sample without them was interrupted.
  const finished = (await listTokens(store)).some(({ account }) => sampleAccounts.includes(account));
  if (finished || !(row?.empty || begun)) return [];

  if (!begun) {
    options.say(`ClickHouse is empty: writing a sample of half a million events to ${folder}`);
    const lastDay = new Date(options.now.getTime() - 86_400_000).toISOString().slice(0, 10);
    await writeSample(store, folder, lastDay);
  }
  for (const name of ['campaigns', 'creatives', 'ad_units', 'sites'] as const) {
    await loadLookupList(store, lookupLists[name], new LocalFile(join(folder, `${name}.csv`)));
  }
  const input = new LocalFile(join(folder, 'events.csv.gz'));
  const progress = await eventProgress([input]);
  try {
    const now = () => new Date();
    await loadEvents({ store, input, now, onProgress: progress.onProgress });
  } finally {
    progress.stop();
  }
  await loadLookupList(store, lookupLists.confirmations, new LocalFile(join(folder, 'confirmations.csv')));

  const accounts: DemoAccount[] = [];
  for (const account of sampleAccounts) {
    accounts.push({ account, token: await createToken(store, { account, label: 'demo' }) });
  }
  return accounts;
}

/** Opens the page for people signed in. What stands behind # is not sent to anyone. */
export function pageLink(url: string, token: string): string {
  return `${url}/app#token=${token}`;
}

/** `curl` commands to paste; without accounts those that one of them can ask, by its token in `TOKEN`. */
export function curlLines(url: string, accounts: readonly DemoAccount[], now: Date): string[] {
  const tokenOf = (account: string) => accounts.find((demo) => demo.account === account)?.token ?? '$TOKEN';
  const day = (ago: number) => new Date(now.getTime() - ago * 86_400_000).toISOString().slice(0, 10);
  const lines: [string, string, number][] = [
    ['/v1/campaigns', newTokenAccount, 30],
    ['/v1/campaigns/breakdowns/device_creative_date', newTokenAccount, 7],
    ['/v1/ad_units/breakdowns/site', 'daily-harbor', 30],
  ];
  return lines
    .filter(([, account]) => accounts.length > 0 || account === newTokenAccount)
    .map(
      ([path, account, days]) =>
        `curl -sS --compressed ${url}${path} -H "authorization: Bearer ${tokenOf(account)}" -H 'content-type: application/json' -d '{"start_time":"${day(days)}","end_time":"${day(1)}"}'`,
    );
}
