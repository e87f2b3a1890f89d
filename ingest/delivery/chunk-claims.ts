import { select } from '../../clickhouse/client.ts';
import type { SendableChunk } from '../chunks/sendable-chunk.ts';
import { ask, type Ledger, recordChunk, repeated, type SentChunk } from '../ledger/ledger.ts';
import type { Load } from '../ledger/load.ts';
import { LoadError } from '../ledger/load-error.ts';
import { replacesLoad, unloadOf } from '../ledger/load-records.ts';
import { type ClaimFacts, claimTable, nextStep, type SendStep } from './chunk-states.ts';
import { dedupStateOf } from './dedup-state.ts';
import { stagedChunks } from './staging.ts';

/** A chunk that is to be sent. */
export interface SendableClaim {
  readonly how: SendStep;
  /**
   * The load time of its rows: when the chunk was claimed first. All attempts under the token of the chunk give the same
   * one, so that events and rollups agree whichever of them each comes from. `yyyy-mm-dd hh:mm:ss.ffffff`, UTC.
   */
  readonly loadTime: string;
  /** The token under which an earlier load has sent it with other chunks. */
  readonly batch?: string;
  /** The token under which it is sent, where ClickHouse may remember its own; absent: that. */
  readonly token?: string;
}

/** What to do with a chunk: nothing, because it is loaded already, or send it. */
export type Claim = { readonly how: 'skip'; readonly rows: number } | SendableClaim;

/** A load that is about to send a chunk, or has sent it. */
interface ChunkClaim {
  readonly chunk: string;
  readonly loadId: string;
  readonly loaded: 0 | 1;
  readonly counted: number;
  /** `yyyy-mm-dd hh:mm:ss.ffffff`, UTC; of 1970 where it was never sent. */
  readonly sentAt: string;
  /** The token under which it was sent with other chunks; empty where it was sent by itself. */
  readonly batch: string;
  /** The load time of the rows that have arrived, whoever sent them. */
  readonly arrivedAt: string | null;
}

/**
 * Records that a load is about to send a chunk, and tells how, from what earlier loads have left of it. By the lock of the
 * load none of them runs any more.
 * @throws when others took the load for dead and have cut its input elsewhere meanwhile
 */
export async function claimChunk(ledger: Ledger, load: Load, chunk: SendableChunk): Promise<Claim> {
  let since: number;
  do {
    since = performance.now();
    // Written twice, first without a time: so a confirmation sees each claim that may get an earlier time than its own. The
    // time of a single statement is earlier than the moment at which others can see it.
    await recordChunk(ledger, load, chunk);
    await recordChunk(ledger, load, chunk, 'sent_at');
    // Behind others it is claimed once more, so that what they have done meanwhile is seen, and the time is later.
  } while (await load.requeueIfLapsed(ledger, since));
  const claims = await claimsFrom(ledger, chunk);
  const seen = new Set([chunk.id, ...chunk.candidates.map(({ id }) => id)]);
  if (claims.some((claim) => claim.loadId !== load.id && !seen.has(claim.chunk) && wasSent(claim)))
    throw overtaken(load);
  return decide(
    ledger,
    load,
    chunk,
    claims.filter((claim) => claim.chunk === chunk.id),
  );
}

async function decide(
  ledger: Ledger,
  load: Load,
  chunk: SentChunk,
  claims: readonly ChunkClaim[],
): Promise<Claim> {
  const earlier = claims.filter(({ loadId }) => loadId !== load.id);
  const loaded = earlier.find((claim) => claim.loaded);
  const sent = earlier.find(wasSent);
  const last = earlier.findLast(wasSent);
  const loadTime = claims[0]?.arrivedAt ?? claims.find(wasSent)?.sentAt;
  if (loadTime === undefined) throw new Error(`the ledger has lost the claim on chunk ${chunk.id}`);
  const [token = chunk.id, ...others] = new Set(earlier.filter(wasSent).map(tokenOf));
  const batch = token === chunk.id ? undefined : token;
  // It has arrived, and nobody has claimed it: a power failure has taken the claim, and what ClickHouse remembers of the token.
  const unclaimed = sent === undefined && claims[0]?.arrivedAt != null;
  let facts: ClaimFacts = {
    loaded: loaded !== undefined,
    sent: sent !== undefined || unclaimed,
    // Under several tokens it may have been stored several times.
    withdrawn: others.length > 0 || unclaimed ? true : 'unknown',
    takenBack: claims[0]?.arrivedAt == null ? 'unknown' : false,
    dedup: 'unknown',
  };
  for (;;) {
    const how = nextStep(claimTable, facts);
    if (how === 'look-up-withdrawn') {
      facts = { ...facts, withdrawn: await wasWithdrawn(ledger, chunk) };
    } else if (how === 'look-up-taken-back') {
      facts = { ...facts, takenBack: last !== undefined && (await wasTakenBack(ledger, last)) };
    } else if (how === 'look-up-dedup') {
      let dedup = await dedupStateOf(ledger, sent?.sentAt ?? '');
      if (batch && dedup === 'reliable' && !(await isHeldBack(ledger, batch, chunk))) dedup = 'unreliable';
      facts = { ...facts, dedup };
    } else if (how === 'skip') return { how, rows: loaded?.counted ?? 0 };
    else if (how === 'send' && facts.takenBack === true)
      return {
        how,
        loadTime: claims.find(({ loadId }) => loadId === load.id)?.sentAt ?? loadTime,
        token: `${chunk.id} ${load.id}`,
      };
    else return { how, loadTime, ...(batch && { batch }) };
  }
}

/** Whether a chunk is loaded, and the last claim on it. */
export async function stateOf(
  ledger: Ledger,
  chunk: SentChunk,
): Promise<{ readonly loaded: boolean; readonly last: ChunkClaim | undefined }> {
  const claims = (await claimsFrom(ledger, chunk)).filter((claim) => claim.chunk === chunk.id);
  return { loaded: claims.some(({ loaded }) => loaded), last: claims.at(-1) };
}

/**
 * Right before a claimed chunk is stored or deleted: takes nothing from under the hands of a load that took this one for dead.
 * @param since when it was claimed, by `performance.now()`
 * @throws when such a load has gone on with it
 */
export async function requireOwn(ledger: Ledger, load: Load, chunk: SentChunk, since: number): Promise<void> {
  if (!(await load.requeueIfLapsed(ledger, since))) return;
  if ((await claimsFrom(ledger, chunk)).at(-1)?.loadId !== load.id) throw overtaken(load);
}

/**
 * The chunks that are sent again under the token of a batch: they are held back, and were sent under no other. The loads that
 * send it may just have claimed another of them: that goes with it, because alone each would take the token from the other.
 * @param loads ids
 * @throws {NotRepeatable} where another load has just claimed one of them, and it is not loaded: where ClickHouse has a part of
 * the batch, the token would be taken without that chunk
 */
export async function chunksUnder(
  ledger: Ledger,
  loads: readonly string[],
  batch: string,
): Promise<string[]> {
  const staged = await stagedChunks(ledger, batch);
  const claims = await Promise.all(staged.map((chunk) => claimsFrom(ledger, chunk)));
  const own: string[] = [];
  for (const [n, { id }] of staged.entries()) {
    const ofChunk = (claims[n] ?? []).filter((claim) => claim.chunk === id);
    const isOther = (claim: ChunkClaim) =>
      !loads.includes(claim.loadId) && wasSent(claim) && tokenOf(claim) !== batch;
    if (!ofChunk.some(isOther)) own.push(id);
    else if (!ofChunk.some(({ loaded }) => loaded)) throw new NotRepeatable();
  }
  return own;
}

/**
 * An insert under the token of the chunk, or of its batch, would count twice, or leave out for ever, what ClickHouse has stored
 * of it, or is refused with the batch.
 */
export class NotRepeatable extends Error {}

function overtaken(load: Load): LoadError {
  return new LoadError(
    `load ${load.id} was silent for long, and another load has gone on with what it was at: run the same command again`,
  );
}

/** What keeps that from being stored twice which the load of a claim has sent. */
const tokenOf = ({ batch, chunk }: ChunkClaim): string => batch || chunk;

/** A claim without a time was never sent. */
function wasSent({ sentAt }: ChunkClaim): boolean {
  return !sentAt.startsWith('1970');
}

/** The claims on all chunks that begin where one does, in their order. */
const claimsFrom = repeated<Pick<SentChunk, 'head' | 'id'>, readonly ChunkClaim[]>(async (store, places) => {
  const query = `
    WITH (SELECT mapFromArrays(groupArray(d.chunk), groupArray(d.at)) FROM (
      SELECT chunk, max(t.loaded_at) AS at FROM chunk_days AS t WHERE chunk IN {chunks:Array(String)} GROUP BY chunk) AS d) AS times
    SELECT lower(hex(c.head)) AS first, chunk, load_id AS loadId, toUInt8(toUInt64(max(c.loaded_at)) > 0) AS loaded,
           toFloat64(max(c.rows)) AS counted, toString(max(c.sent_at)) AS sentAt, max(c.batch) AS batch,
           if(mapContains(times, chunk), toString(times[chunk]), NULL) AS arrivedAt
    FROM load_chunks AS c WHERE head IN (SELECT toFixedString(unhex(arrayJoin({heads:Array(String)})), 32))
    GROUP BY head, chunk, load_id ORDER BY max(c.sent_at), load_id`;
  const claims = await select<ChunkClaim & { first: string }>(store, query, {
    heads: places.map(({ head }) => head),
    chunks: places.map(({ id }) => id),
  });
  return places.map(({ head }) => claims.filter(({ first }) => first === head));
});

async function wasWithdrawn(ledger: Ledger, { id }: SentChunk): Promise<boolean> {
  const query = 'SELECT 1 FROM withdrawn_chunks WHERE chunk = {chunk:String} LIMIT 1';
  return (await ask(ledger, query, { chunk: id })).length > 0;
}

/** Whether the load of a claim was unloaded or replaced after all others that began to withdraw the chunk, and nothing came since. */
async function wasTakenBack(ledger: Ledger, { chunk, loadId }: ChunkClaim): Promise<boolean> {
  const isUnloaded = `SELECT 1 FROM loads AS l FINAL WHERE load_id = {loadId:String} AND l.state = 'unloaded'
    AND l.version > (SELECT max(w.at) FROM withdrawn_chunks AS w WHERE chunk = {chunk:String})`;
  if ((await ask(ledger, isUnloaded, { loadId, chunk })).length === 0) return false;
  const events = `SELECT 1 FROM events WHERE chunk = {chunk:String}
    AND day IN (SELECT day FROM withdrawn_chunks WHERE chunk = {chunk:String}) LIMIT 1`;
  return (await ask(ledger, events, { chunk })).length === 0;
}

/** Whether an `unload` or a replacement of the load of a claim has begun since; it may have taken out what was there. */
export async function mayBeTakenBack(ledger: Ledger, { loadId, sentAt }: ChunkClaim): Promise<boolean> {
  const query = `SELECT 1 FROM loads AS l FINAL
    WHERE (l.file = {unload:String} OR (kind = 'replacement' AND endsWith(l.file, {replacement:String})))
      AND l.version > toDateTime64({sentAt:String}, 6, 'UTC') LIMIT 1`;
  const params = { unload: unloadOf(loadId), replacement: ` ${replacesLoad(loadId)}`, sentAt };
  return (await ask(ledger, query, params)).length > 0;
}

/** What is not held back any more of a batch cannot be sent again under its token. */
async function isHeldBack(ledger: Ledger, batch: string, { id }: SentChunk): Promise<boolean> {
  return (await stagedChunks(ledger, batch)).some((staged) => staged.id === id);
}
