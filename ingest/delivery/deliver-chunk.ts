import type { Store } from '../../clickhouse/client.ts';
import type { SendableChunk } from '../chunks/sendable-chunk.ts';
import { type Ledger, storeTime } from '../ledger/ledger.ts';
import type { Load } from '../ledger/load.ts';
import { LoadError } from '../ledger/load-error.ts';
import type { RejectLimit } from '../rejects/reject-limit.ts';
import { chunksUnder, noteBatch, requireOwn, type SendableClaim } from './chunk-claims.ts';
import { countEvents } from './chunk-outcome.ts';
import { nextStep, type SendStep, sentTable } from './chunk-states.ts';
import { type DedupState, dedupStateOf } from './dedup-state.ts';
import type { Sender, SentRows } from './sender.ts';
import { forgetPast, putInDoubt, withdrawChunks } from './withdraw-chunks.ts';

export interface Delivery {
  readonly store: Store;
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

interface Attempt extends AttemptStart {
  readonly number: number;
  readonly how: SendStep;
  /** Of what earlier attempts sent under the same token. */
  readonly dedup: DedupState;
  /** Time of ClickHouse, `yyyy-mm-dd hh:mm:ss.ffffff`, UTC. */
  readonly since: string;
}

/**
 * Sends a claimed chunk, again if it has to, until ClickHouse has each of its events exactly once.
 * @returns `rollupsInDoubt` when its rollups may miss some of it or count it twice
 */
export async function deliverChunk(
  delivery: Delivery,
  chunk: SendableChunk,
  claim: SendableClaim,
  claimed: AttemptStart,
): Promise<SentRows & { readonly rollupsInDoubt: boolean }> {
  const { ledger, sender, load } = delivery;
  // What a batch has brought was not counted before.
  const how = claim.batch && sender.counts ? 'withdraw-and-send' : claim.how;
  let attempt: Attempt = { ...claimed, number: 0, how, dedup: claim.dedup, since: claim.loadTime };
  for (;;) {
    const sent = await sendOnce(delivery, chunk, claim, attempt);
    const dedup = await dedupAfter(delivery, attempt);
    const facts = { how: attempt.how, dedup, balanced: !(load || sender.holds) || isBalanced(chunk, sent) };
    let next = nextStep(sentTable, { ...facts, whole: 'unknown' });
    if (next === 'count-events') {
      next = nextStep(sentTable, { ...facts, whole: await isWhole(ledger, chunk, sent) });
    }
    if (next === 'fail') throw unbalanced(chunk, sent);
    if (next === 'mark-loaded') return { ...sent, rollupsInDoubt: false };
    if (next === 'repair-rollups') return { ...sent, rollupsInDoubt: true };
    delivery.rejectLimit?.takeBack(chunk.rows, sent.rejectedRows);
    attempt = {
      number: attempt.number + 1,
      how: 'withdraw-and-send',
      dedup: 'reliable',
      interruptions: sender.interruptions,
      at: performance.now(),
      since: await storeTime(ledger),
    };
  }
}

async function sendOnce(
  { store, ledger, sender, load, onSent }: Delivery,
  chunk: SendableChunk,
  { loadTime, batch }: SendableClaim,
  { how, number, at }: Attempt,
): Promise<SentRows> {
  const loadId = load?.id ?? '';
  const note = async (token: string) => load && noteBatch(ledger, load, chunk, token, at);
  const before = async () => load && requireOwn(ledger, load, chunk, at);
  const sending = { loadTime, loadId, onSent, note, before, first: how === 'send' };
  if (how === 'send-again' && batch) {
    await note(batch);
    return sender.sendBatchAgain(chunk, batch, await chunksUnder(ledger, batch), sending);
  }
  if (how !== 'withdraw-and-send' || !load) return sender.send(chunk, sending);
  await before();
  // Others may have loaded it before.
  await putInDoubt(ledger, load, [chunk.id]);
  await forgetPast(store, [chunk.id]);
  await before();
  await withdrawChunks(store, [chunk.id]);
  // Others may have loaded it in the middle of that, and have lost some of it.
  if (await load.requeueIfLapsed(ledger, at)) await putInDoubt(ledger, load, [chunk.id]);
  const token = `${chunk.id} ${load.id} ${number}`;
  // None of its rows is left, so their load time need not be kept; revenue may have been confirmed since.
  return sender.send({ ...chunk, token }, { ...sending, loadTime: await storeTime(ledger) });
}

/**
 * Whether deduplication could be relied on during the whole attempt. A chunk that is sent again has the load time of
 * an earlier attempt: only now can it be told that no revenue was confirmed before it arrived.
 */
async function dedupAfter({ ledger, sender, load }: Delivery, attempt: Attempt): Promise<DedupState> {
  const lapsed = load?.heartbeatLapsedSince(attempt.at) ?? false;
  if (lapsed && attempt.how === 'withdraw-and-send') return 'expired';
  const interrupted = sender.interruptions > attempt.interruptions || lapsed;
  if (!load || (!interrupted && attempt.how !== 'send-again')) return attempt.dedup;
  const found = await dedupStateOf(ledger.store, attempt.since, ledger.retries);
  return found === 'reliable' ? attempt.dedup : found;
}

/** Every record that was cut is an event, a duplicate, a rejected row or left out. */
function isBalanced(chunk: SendableChunk, { rows, duplicates, rejectedRows, leftOut }: SentRows): boolean {
  return rows + duplicates + rejectedRows + leftOut === chunk.rows;
}

/** The events are there as well, not only in the list of their days. */
async function isWhole(ledger: Ledger, chunk: SendableChunk, { rows }: SentRows): Promise<boolean> {
  const { events, listed } = await countEvents(ledger, chunk);
  return events === rows && listed === rows;
}

function unbalanced({ id, unit, firstLine, rows }: SendableChunk, sent: SentRows): LoadError {
  return new LoadError(
    `the chunk from ${unit} ${firstLine} has ${rows} records, but ClickHouse has ${sent.rows} events and ${sent.rejectedRows} rejected rows of it${sent.duplicates > 0 ? `, beside ${sent.duplicates} duplicates` : ''}${sent.leftOut > 0 ? `, and left out ${sent.leftOut}` : ''}. It does not count as loaded. Please report this, with the chunk ${id}`,
  );
}
