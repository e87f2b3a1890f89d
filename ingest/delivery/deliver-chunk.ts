import { lapsedAfterMs } from '../../clickhouse/timings.ts';
import type { SendableChunk } from '../chunks/sendable-chunk.ts';
import { type Ledger, recordChunk } from '../ledger/ledger.ts';
import type { Load } from '../ledger/load.ts';
import { LoadError } from '../ledger/load-error.ts';
import type { RejectLimit } from '../rejects/reject-limit.ts';
import { WentBehind } from './batches.ts';
import { NotRepeatable, requireOwn, type SendableClaim } from './chunk-claims.ts';
import { countEvents } from './chunk-outcome.ts';
import { nextStep, sentTable } from './chunk-states.ts';
import { type DedupState, dedupStateOf } from './dedup-state.ts';
import type { Sender, SentRows } from './sender.ts';
import { dropStaged, heldBy } from './staging.ts';

interface Delivery {
  readonly ledger: Ledger;
  readonly sender: Sender;
  /** Absent for a dry run. */
  readonly load: Load | undefined;
  readonly rejectLimit?: RejectLimit | undefined;
  /** Called when the chunk was sent and is only looked after: another one may be sent meanwhile. */
  readonly onSent: () => void;
}

/** Since when an attempt may have been interrupted: the server restarted, or the load taken for dead. */
export interface AttemptStart {
  /** Of the sender, so far. */
  readonly interruptions: number;
  /** By `performance.now()`. */
  readonly at: number;
}

/**
 * Sends a claimed chunk, or holds it back where it cannot be told what ClickHouse would make of it: `mendChunks` goes on with that.
 */
export async function deliverChunk(
  delivery: Delivery,
  chunk: SendableChunk,
  claim: SendableClaim,
  claimed: AttemptStart,
): Promise<SentRows & { readonly isHeldBack: boolean }> {
  const { ledger, sender, load, onSent } = delivery;
  const { loadTime, token = chunk.id } = claim;
  let { batch } = claim;
  const note = async (token: string) => {
    batch = token;
    if (load) await recordChunk(ledger, load, chunk, 'claimed', { batch });
  };
  // What a batch has brought was not counted before.
  const how = batch && sender.counts ? 'hold-back' : claim.how;
  const before = async () => {
    if (!load) return;
    let asked: number;
    do {
      asked = performance.now();
      if (load.isBehind) throw new WentBehind();
      await requireOwn(ledger, load, chunk, claimed.at);
      if (sender.interruptions === claimed.interruptions) return;
      if ((await dedupStateOf(ledger, loadTime)) === 'unreliable') throw new NotRepeatable();
      // ClickHouse may have forgotten the token since it answered.
    } while (performance.now() - asked > lapsedAfterMs);
  };
  const sending = {
    loadTime,
    loadId: load?.id ?? '',
    token,
    onSent,
    note,
    before,
    first: how === 'send',
  };
  const send = async (): Promise<SentRows> => {
    for (;;) {
      try {
        if (!batch) return await sender.send(chunk, sending);
        await note(batch);
        return await sender.sendBatchAgain(chunk, batch, sending);
      } catch (error) {
        if (!load || !(error instanceof WentBehind)) throw error;
        // Until its turn comes, ClickHouse may forget what was sent before.
        sender.interruptions++;
        await requireOwn(ledger, load, chunk, claimed.at);
      }
    }
  };
  const sent = how === 'hold-back' ? undefined : await send().catch(notRepeated);
  if (sent && how !== 'hold-back') {
    const dedup = await dedupAfter(delivery, claim, claimed);
    const facts = { how, dedup, balanced: !(load || sender.holds) || isBalanced(chunk, sent) };
    let next = nextStep(sentTable, { ...facts, whole: 'unknown' });
    if (next === 'count-events') {
      next = nextStep(sentTable, { ...facts, whole: await isWhole(ledger, chunk, sent) });
    }
    if (next === 'fail') throw unbalanced(chunk, sent);
    if (next === 'mark-loaded') return { ...sent, isHeldBack: false };
    delivery.rejectLimit?.takeBack(chunk.rows, sent.rejectedRows);
  }
  try {
    const held = await sender.holdBack(chunk, sending);
    if (isBalanced(chunk, held)) return { ...held, isHeldBack: true };
    throw unbalanced(chunk, held);
  } catch (error) {
    // What cannot be dropped expires after a day; the first failure is the one to tell.
    await dropStaged(ledger.store, [heldBy(chunk.id, sending.loadId)]).catch(() => {});
    throw error;
  }
}

function notRepeated(error: unknown): undefined {
  if (!(error instanceof NotRepeatable)) throw error;
}

/**
 * Whether deduplication could be relied on during the whole attempt. A chunk that is sent again has the load time of
 * an earlier attempt: only now can it be told that no revenue was confirmed before it arrived.
 */
async function dedupAfter(
  { ledger, sender, load }: Delivery,
  { how, loadTime }: SendableClaim,
  claimed: AttemptStart,
): Promise<DedupState> {
  const interrupted = sender.interruptions > claimed.interruptions || load?.heartbeatLapsedSince(claimed.at);
  if (!load || (!interrupted && how === 'send')) return 'reliable';
  return dedupStateOf(ledger, loadTime);
}

/** Every record that was cut is an event, a duplicate, a rejected row or left out. */
function isBalanced(chunk: SendableChunk, { rows, duplicates, rejectedRows, leftOut }: SentRows): boolean {
  return rows + duplicates + rejectedRows + leftOut === chunk.rows;
}

/** The events are there as well, not only in the list of their days. */
async function isWhole(ledger: Ledger, chunk: SendableChunk, { rows }: SentRows): Promise<boolean> {
  const { events, listed } = await countEvents(ledger, chunk.id);
  return events === rows && listed === rows;
}

function unbalanced({ id, unit, firstLine, rows }: SendableChunk, sent: SentRows): LoadError {
  return new LoadError(
    `the chunk from ${unit} ${firstLine} has ${rows} records, but ClickHouse has ${sent.rows} events and ${sent.rejectedRows} rejected rows of it${sent.duplicates > 0 ? `, beside ${sent.duplicates} duplicates` : ''}${sent.leftOut > 0 ? `, and left out ${sent.leftOut}` : ''}. It does not count as loaded. Please report this, with the chunk ${id}`,
  );
}
