import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { AwsClient } from 'aws4fetch';
import { connect, type Store, select } from '../../../clickhouse/client.ts';
import { retrying } from '../../../clickhouse/retry.ts';
import { verifyLedger } from '../../../ingest/history/verify-ledger.ts';
import { createToken } from '../../../src/accounts/tokens.ts';
import { type KillableStore, startKillable } from '../killable-store.ts';
import { type Fault, type OwnObjectStorage, objectStorage } from '../object-storage.ts';
import { differences } from '../recount.ts';
import { Dice } from '../round-files.ts';
import { inTurn, type Rounds } from '../rounds.ts';
import type { WrittenEvent } from '../written-events.ts';
import { BucketWriter } from './bucket-writer.ts';
import { ChannelSender } from './channel-sender.ts';
import { type Content, makeContent } from './contents.ts';
import { Pusher } from './pusher.ts';
import { followedAt, Services } from './services.ts';

/** In peace followers look, and all is loaded after some looks; what has not come by then never will. */
const endsWithinMs = 300_000;

interface Ground extends KillableStore {
  readonly store: Store;
  readonly storage: OwnObjectStorage;
  readonly services: Services;
  readonly token: string;
  readonly folder: string;
}

/**
 * Each round lets events arrive in every way at once: a writer adds, overwrites, renames, copies and deletes objects that two
 * followers look for, senders push bodies, repeat, cut and race them, with and without keys, partly the same bytes, and one
 * sends a stream through a channel; storage, followers, service and engine fail meanwhile. A content counts once, and once
 * for each key under which it was sent. One whose last object went before the ledger had it is put back in the end, and has to count then. Where nothing was killed it may be left
 * out as well, and then nothing of it may count. Events, all rollups and rejected rows are then compared with a recount, key by key, and
 * with the ledger.
 * @throws at the first round that differs, naming seed, round and difference
 */
export async function arrivalRounds(options: Rounds): Promise<void> {
  const { seed, shards = 1 } = options;
  const folder = await mkdtemp(join(tmpdir(), 'adtally-arrivals-'));
  const storage = objectStorage('events');
  await storage.start();
  const killable = await startKillable(shards, join(folder, 'data'));
  const store = connect(killable.address);
  const token = await createToken(store, { account: 'web', label: '', purpose: 'ingest' });
  const services = new Services(killable.address, storage, new Dice(seed));
  const ground = { ...killable, store, storage, services, token, folder };
  try {
    await inTurn(options, (prefix, seed) => oneRound(ground, prefix, seed));
  } finally {
    await services.stop();
    await store.close();
    await killable.stop();
    await storage.stop();
    await rm(folder, { recursive: true, force: true });
  }
}

async function oneRound(ground: Ground, prefix: string, seed: number): Promise<string> {
  const { store, storage, services, token, folder } = ground;
  await retrying(() => select(store, 'SELECT 1'));
  const dice = (n: number) => new Dice(seed * 31 + n);
  const contents: Content[] = [];
  const choice = dice(0);
  const any = async () => {
    const known = contents[choice.below(contents.length * 2)];
    if (known) return known;
    const made = await makeContent(folder, `${prefix}c${contents.length}-${choice.below(1_000)}/`, choice);
    contents.push(made);
    return made;
  };
  const writer = new BucketWriter({ storage, folder: prefix, store, dice: dice(1), any });
  const pushers = [2, 3].map(
    (n) => new Pusher({ url: () => services.url, token, prefix: `${prefix}${n}-`, dice: dice(n), any }),
  );
  const channel = new ChannelSender({
    url: () => services.url,
    token,
    prefix: `${prefix}channel/`,
    dice: dice(11),
    withinMs: endsWithinMs,
  });
  const disturbances = dice(10).one([0, 0, 1, 2, 3]);
  storage.meet(faults(storage, dice(4), disturbances > 0));
  const write = async (own: Dice) => {
    for (let step = 4 + own.below(8); step > 0; step--) {
      await writer.change();
      await delay(own.below(300));
    }
  };
  const push = async (pusher: Pusher, own: Dice) => {
    for (let step = 1 + own.below(2); step > 0; step--) {
      await pusher.push();
      await delay(own.below(300));
    }
  };
  const [disturbed] = await Promise.all([
    disturb(ground, disturbances, dice(5)),
    write(dice(6)),
    ...pushers.map((pusher, n) => push(pusher, dice(7 + n))),
    channel.send(),
  ]);
  storage.reset();
  await looks(ground);
  const lost = await writer.lost(contents);
  const leftOut = disturbances > 0 ? [] : lost.filter(() => choice.below(2));
  for (const content of leftOut) await content.leaveOut(store);
  for (const content of lost) if (!leftOut.includes(content)) await writer.add(content);
  await requireLoaded(ground, contents);
  for (const pusher of pushers) await pusher.repeat();
  services.requireNoCrash();
  await requireEqual(store, prefix, contents, channel.events);
  await writer.removeAll();
  const records = contents.flatMap((content) => content.counted()).length;
  return `${contents.length} contents, ${records} records, ${channel.events.length} of a channel, ${lost.length} lost, ${leftOut.length} left out, ${disturbed.join(', ') || 'undisturbed'}`;
}

async function disturb({ services, killEngine }: Ground, times: number, dice: Dice): Promise<string[]> {
  const told: string[] = [];
  for (let n = times; n > 0; n--) {
    await delay(dice.below(1_200));
    const what = dice.one(['service', 'service', 'service', 'engine', 'all'] as const);
    if (what === 'service') told.push(await services.disturb(dice));
    else {
      if (what === 'all') services.killAll();
      await killEngine(dice);
      told.push(what === 'all' ? 'engine and services' : what);
    }
  }
  return told;
}

/** Waits until both followers have been through all that lies there. */
async function looks({ storage, services }: Ground): Promise<void> {
  const hosts = followedAt(storage.endpoint).map((endpoint) => new URL(endpoint).host);
  const from = storage.asked.length;
  const listings = (host: string) =>
    storage.asked.slice(from).filter(({ path, headers }) => isListing(path) && headers.host === host).length;
  // The third begins when the second has been worked off, which has begun after all that was changed.
  const until = performance.now() + endsWithinMs;
  while (hosts.some((host) => listings(host) < 3)) {
    services.requireNoCrash();
    if (performance.now() > until) throw new Error('a follower looks no more');
    await delay(100);
  }
}

const isListing = (path: string) => path.includes('list-type=2');

/**
 * A storage that is busy, slow, breaks off, says that an object has changed, and lists what was there before.
 * @param refuses it also denies access now and then, which leaves what was sent before
 */
function faults(
  storage: OwnObjectStorage,
  dice: Dice,
  refuses: boolean,
): Parameters<OwnObjectStorage['meet']>[0] {
  const client = new AwsClient({
    accessKeyId: 'S3RVER',
    secretAccessKey: 'S3RVER',
    service: 's3',
    region: 'us-east-1',
  });
  const listings = new Map<string, string>();
  let looking = false;
  return async ({ path, headers }): Promise<Fault | undefined> => {
    if (isListing(path) && !looking && dice.below(3) === 0) {
      const before = listings.get(path);
      if (before !== undefined && dice.below(2)) return { body: before };
      looking = true;
      try {
        const answer = await client.fetch(storage.endpoint + path);
        if (answer.ok) listings.set(path, await answer.text());
      } finally {
        looking = false;
      }
    }
    if (looking) return undefined;
    if (headers.range && !headers.range.startsWith('bytes=0-')) await delay(dice.below(400));
    const met: Fault[] = [
      { status: 503, code: 'SlowDown' },
      { status: 412, code: 'PreconditionFailed' },
      { cutAfter: dice.below(20_000) },
      { cutAfter: dice.below(5_000_000) },
      ...(refuses ? [{ status: 403, code: 'AccessDenied' }] : []),
    ];
    return met[dice.below((headers.range ? 4 : 12) * met.length)];
  };
}

/** Waits until the followers have loaded every content. @throws when they leave one out */
async function requireLoaded({ store, services }: Ground, contents: readonly Content[]): Promise<void> {
  const until = performance.now() + endsWithinMs;
  for (const content of contents.filter(({ shown }) => shown >= 0)) {
    while (!(await content.isLoaded(store))) {
      services.requireNoCrash();
      if (performance.now() > until) throw new Error(`never loaded: ${describe(content)}`);
      await delay(200);
    }
  }
}

async function requireEqual(
  store: Store,
  prefix: string,
  contents: readonly Content[],
  others: readonly WrittenEvent[],
): Promise<void> {
  const counted = [...contents.flatMap((content) => content.counted()), ...others];
  const good = counted.filter((event) => !event.wrong).map((event) => event.counted);
  const found = await retrying(() => differences(store, prefix, good));
  const query = `SELECT fields['event_id'] AS id FROM rejected_rows FINAL WHERE startsWith(id, {prefix:String})`;
  const rejected = await retrying(() => select<{ id: string }>(store, query, { prefix }));
  const wrong = counted.filter((event) => event.wrong);
  if (rejected.length !== wrong.length) found.push(`rejected rows: ${rejected.length}, not ${wrong.length}`);
  const { differences: ledger } = await retrying(() => verifyLedger(store));
  found.push(...ledger.slice(0, 4).map((difference) => `ledger: ${JSON.stringify(difference)}`));
  if (found.length > 0) {
    const query = `
      SELECT file, load_id, toString(state) AS state, error, toString(started_at) AS started, toString(version) AS ended, rows, repeated_rows
      FROM loads FINAL WHERE position(file, {prefix:String}) > 0 OR kind = 'rebuild' AND started_at > now() - 300 ORDER BY started_at`;
    const loads = await select(store, query, { prefix });
    const told = loads.map((load) => JSON.stringify(load));
    throw new Error([...found, ...told, ...contents.map(describe)].join('\n'));
  }
}

function describe({ format, versions, shown, settled, keys, story }: Content): string {
  const [{ events }] = versions;
  return `${events[0]?.counted.advertiser_id || events[0]?.counted.publisher_id}: ${format}, ${versions.map((each) => each.events.length)} records, shown ${shown}, settled ${settled}, keys ${[...keys]}, ${story.join(', ')}`;
}
