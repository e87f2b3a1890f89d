import { select } from '../../clickhouse/client.ts';
import { retrying } from '../../clickhouse/retry.ts';
import { together } from '../ledger/batch-calls.ts';
import { firstAlive, type Ledger, recordChunk, type SentChunk, storeTime } from '../ledger/ledger.ts';
import type { Load } from '../ledger/load.ts';
import { waitUntil } from '../ledger/wait-until.ts';
import { type ClaimFacts, claimTable, nextStep, type SendStep } from './chunk-states.ts';
import { type DedupState, dedupStateOf } from './dedup-state.ts';

/** A chunk that is this load's to send. */
export interface SendableClaim {
  readonly how: SendStep;
  /** Of what has arrived under the token that the chunk is sent under. */
  readonly dedup: DedupState;
  /**
   * The load time of its rows: when the chunk was claimed first. All attempts under the token of the chunk give the same
   * one, so that events and rollups agree whichever of them each comes from. `yyyy-mm-dd hh:mm:ss.ffffff`, UTC.
   */
  readonly loadTime: string;
}

/** What to do with a chunk: nothing, because it is loaded already, or send it. */
export type Claim = { readonly how: 'skip'; readonly rows: number } | SendableClaim;

interface ChunkClaim {
  readonly loadId: string;
  readonly loaded: 0 | 1;
  readonly counted: number;
  readonly sentAt: string;
}

export interface ChunkClaims {
  /** Loads that claimed the chunk before this one, in that order. */
  readonly earlier: readonly ChunkClaim[];
  readonly last: string;
  /** That of a load which has loaded the chunk. */
  readonly loaded: ChunkClaim | undefined;
  readonly loadTime: string;
}

/**
 * Makes a chunk this load's own to send, unless it is loaded. Waits for a running load that has claimed it earlier.
 */
export async function claimChunk(ledger: Ledger, load: Load, chunk: SentChunk): Promise<Claim> {
  // Write the claim twice: first without a time, which sorts before all others, then with one. So a load with an
  // earlier time is always visible by the time a later one looks. A single statement would not do: its time is earlier
  // than the moment at which others can see it.
  await recordChunk(ledger, load, chunk);
  await recordChunk(ledger, load, chunk, 'sent_at');
  let claims = await claimsOf(ledger, load, chunk);
  const blockedBy = async () => {
    if (claims.loaded || claims.earlier.length === 0) return undefined;
    const other = await firstAlive(ledger, claims.earlier);
    // A load that has ended may have loaded the chunk since the last look.
    claims = await claimsOf(ledger, load, chunk);
    return claims.loaded ? undefined : other;
  };
  await waitUntil(blockedBy, { signal: ledger.signal, pollMs: ledger.timings.pollMs });
  return decide(ledger, chunk, claims);
}

async function decide(ledger: Ledger, chunk: SentChunk, claims: ChunkClaims): Promise<Claim> {
  const { loaded, earlier, loadTime } = claims;
  const sent = earlier.find(mayHaveSent);
  let dedup: DedupState = 'reliable';
  let facts: ClaimFacts = {
    loaded: loaded !== undefined,
    sent: sent !== undefined,
    withdrawn: 'unknown',
    dedup: 'unknown',
  };
  for (;;) {
    const how = nextStep(claimTable, facts);
    if (how === 'look-up-withdrawn') {
      facts = { ...facts, withdrawn: await wasWithdrawn(ledger, chunk) };
    } else if (how === 'look-up-dedup') {
      dedup = await dedupStateOf(ledger.store, sent?.sentAt ?? '', ledger.retries);
      facts = { ...facts, dedup };
    } else if (how === 'skip') return { how, rows: loaded?.counted ?? 0 };
    // Nothing will be left of what came before.
    else if (how === 'withdraw-and-send')
      return { how, loadTime: await storeTime(ledger), dedup: 'reliable' };
    else return { how, loadTime, dedup };
  }
}

/** The loads that have claimed a chunk, and the load time of its rows. */
export async function claimsOf(
  { store, retries }: Ledger,
  load: Load,
  { firstLineHash: head, id: chunk }: SentChunk,
): Promise<ChunkClaims> {
  const claims = await retrying(() => claimsOn(store, { head, chunk }), retries);
  const last = claims.at(-1);
  if (!last) throw new Error(`the ledger has lost the claim on chunk ${chunk}`);
  return {
    earlier: claims.slice(
      0,
      claims.findIndex(({ loadId }) => loadId === load.id),
    ),
    last: last.loadId,
    loaded: claims.find(({ loaded }) => loaded),
    // Version 0.1 took another time than that of the claim.
    loadTime: last.arrivedAt ?? (claims.find(mayHaveSent) ?? last).sentAt,
  };
}

/** A claim without a time was never sent. */
function mayHaveSent({ sentAt }: ChunkClaim): boolean {
  return !sentAt.startsWith('1970');
}

type TimedClaim = ChunkClaim & { readonly arrivedAt: string | null };

/** The claims on a chunk, in their order. */
const claimsOn = together<{ head: string; chunk: string }, readonly TimedClaim[]>(async (store, chunks) => {
  const query = `
    WITH (SELECT mapFromArrays(groupArray(d.chunk), groupArray(d.at)) FROM (
      SELECT chunk, max(t.loaded_at) AS at FROM chunk_days AS t WHERE chunk IN {chunks:Array(String)} GROUP BY chunk) AS d) AS times
    SELECT chunk, load_id AS loadId, toUInt8(toUInt64(max(c.loaded_at)) > 0) AS loaded,
           toFloat64(max(c.rows)) AS counted, toString(max(c.sent_at)) AS sentAt,
           if(mapContains(times, chunk), toString(times[chunk]), NULL) AS arrivedAt
    FROM load_chunks AS c
    WHERE head IN (SELECT toFixedString(unhex(arrayJoin({heads:Array(String)})), 32)) AND chunk IN {chunks:Array(String)}
    GROUP BY chunk, load_id ORDER BY max(c.sent_at), load_id`;
  const claims = await select<TimedClaim & { chunk: string }>(store, query, {
    heads: chunks.map(({ head }) => head),
    chunks: chunks.map(({ chunk }) => chunk),
  });
  return chunks.map(({ chunk }) => claims.filter((claim) => claim.chunk === chunk));
});

async function wasWithdrawn({ store, retries }: Ledger, { id }: SentChunk): Promise<boolean> {
  const query = 'SELECT 1 FROM withdrawn_chunks WHERE chunk = {chunk:String} LIMIT 1';
  return (await retrying(() => select(store, query, { chunk: id }), retries)).length > 0;
}
