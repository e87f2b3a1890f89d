import { createHash } from 'node:crypto';
import { insertData, type Store } from '../../clickhouse/client.ts';
import { layoutOf } from '../../clickhouse/cluster/layout.ts';
import { quoted } from '../../clickhouse/quoted.ts';
import { type RetryOptions, retrying } from '../../clickhouse/retry.ts';
import type { BundledRecords } from '../chunks/sendable-chunk.ts';
import { insertSettings } from '../event/insert-settings.ts';
import { type JudgeOptions, judgedColumns, judgeRecords, type Origin } from '../event/judge.ts';
import { lineBits, lineIn } from '../event/record-place.ts';
import type { RecordSource } from '../event/record-source.ts';
import { together } from '../ledger/batch-calls.ts';
import type { Ledger } from '../ledger/ledger.ts';
import { isRefusal } from '../ledger/load-error.ts';
import { chunksUnder, NotRepeatable } from './chunk-claims.ts';
import { dropStaged, publish, type StagedBatch, sendStaged } from './staging.ts';

/** A small chunk, to be stored together with others. */
export interface BatchedChunk {
  readonly id: string;
  readonly head: string;
  readonly bundled: BundledRecords;
  readonly bytes: number;
  readonly judge: JudgeOptions;
  readonly loadTime: string;
  readonly loadId: string;
  readonly file: string;
  readonly retries: RetryOptions;
  /** How many loads are under way, this one included, that may have such a chunk. */
  readonly loads: () => number;
  /** Notes in the ledger under which token the chunk is going to be stored. */
  readonly note: (token: string) => Promise<void>;
  /** Called right before it is stored, each time. @throws when it must not be stored now */
  readonly before: () => Promise<void>;
}

/** A chunk that is stored again with all that is held back of its batch. */
interface ChunkAgain extends Pick<BatchedChunk, 'loadId' | 'before' | 'retries' | 'loads'> {
  /** Of the batch. */
  readonly token: string;
}

/** Chunks of several loads that are stored by one statement. */
export interface Batch {
  /** What keeps it from being stored twice. */
  readonly token: string;
  /** Chunks of it that do not count as loaded yet. */
  unsettled: number;
}

/** Where the records of several chunks are from. Not as parameters, which would make the address of the statement long. */
function originOf(chunks: readonly BatchedChunk[]): Origin {
  const nth = (texts: readonly string[], type = 'String') =>
    `[${texts.map(quoted).join(', ')}]::Array(${type})[bitShiftRight(at_line, ${lineBits}) + 1]`;
  return {
    chunk: nth(chunks.map(({ id }) => id)),
    loadTime: nth(
      chunks.map(({ loadTime }) => loadTime),
      "DateTime64(6, 'UTC')",
    ),
    loadId: nth(chunks.map(({ loadId }) => loadId)),
    file: nth(chunks.map(({ file }) => file)),
    line: lineIn('at_line'),
  };
}

/** As many files as are loaded at once. */
const mostChunks = 256;
/** A chunk that comes when a batch has so many begins another one: ClickHouse needs about four times as much memory. */
const enoughBytes = 64 << 20;
/** So many paths of 4,096 bytes, and the statement that judges. */
const mostQueryBytes = 2 << 20;
/**
 * How long the chunks of all loads under way are waited for. A batch costs the engine some 150 ms beside its records, so two
 * halves that take turns cost more than what is idle meanwhile.
 */
const awaited = { count: ({ loads }: Pick<BatchedChunk, 'loads'>) => loads(), ms: 2_000 };

/**
 * Judges small chunks and stores them, many in one statement: to analyse it, and to bring it through all views, takes
 * ClickHouse longer than the records of such a chunk. They are held back in `incoming_staging` first, so that a batch can be
 * stored again under its token when the files it came from are gone. Where ClickHouse refuses to hold several back, nothing is
 * stored of them, and the answer is undefined: each is sent by itself.
 * @throws {NotRepeatable} where it refuses to store several
 */
export const sendTogether = together<BatchedChunk, Batch | undefined>(
  (store, chunks) => eachOf(chunks, inRuns(statementOf), (members) => sendBatch(store, members)),
  { most: mostChunks, awaited },
);

/**
 * Stores batches again under their tokens, each by one statement for all loads under way: a chunk that comes later finds its
 * token taken.
 * @throws {NotRepeatable} where ClickHouse refuses that, perhaps because of a chunk of another load
 */
export const sendAgainTogether = together<ChunkAgain, void>(
  (store, chunks) =>
    eachOf(
      chunks,
      ({ token }) => token,
      async (members) => {
        const [{ token }] = members;
        const ledger = { store, ...retriesOf(members) };
        const chunks = await chunksUnder(ledger, loadsOf(members), token);
        await storeFor(store, members, token, chunks).catch(eachByItself);
      },
    ),
  { most: mostChunks, awaited },
);

/** Chunks of one key in runs that are not too large. */
function inRuns(keyOf: (chunk: BatchedChunk) => string): (chunk: BatchedChunk) => string {
  const bytes = new Map<string, number>();
  return (chunk) => {
    const key = keyOf(chunk);
    const before = bytes.get(key) ?? 0;
    bytes.set(key, before + chunk.bytes);
    return `${Math.floor(before / enoughBytes)} ${key}`;
  };
}

/** Sends what has the same key by one statement, one after another. */
async function eachOf<Member extends object, Answer>(
  chunks: readonly Member[],
  keyOf: (chunk: Member) => string,
  send: (members: readonly [Member, ...Member[]]) => Promise<Answer>,
): Promise<readonly Promise<Answer>[]> {
  const groups = new Map<string, [Member, ...Member[]]>();
  for (const chunk of chunks) {
    const key = keyOf(chunk);
    const group = groups.get(key);
    if (group) group.push(chunk);
    else groups.set(key, [chunk]);
  }
  const sent = new Map<Member, Promise<Answer>>();
  for (const members of groups.values()) {
    const answer = send(members);
    for (const member of members) sent.set(member, answer);
    await Promise.allSettled([answer]);
  }
  return chunks.map(async (chunk) => {
    try {
      return await (sent.get(chunk) as Promise<Answer>);
    } catch (error) {
      throw error instanceof Refused ? (error.by.get(chunk) ?? new WentBehind()) : error;
    }
  });
}

/**
 * A load, or one whose chunk is stored by the same statement, has to go behind others. It does so outside of all that loads
 * share: those that it waits for may themselves wait for a load that needs the place.
 */
export class WentBehind extends Error {}

/** Members of a batch must not be stored now; the others can be sent again. */
class Refused extends Error {
  readonly by: ReadonlyMap<object, unknown>;

  constructor(by: ReadonlyMap<object, unknown>) {
    super('a chunk must not be stored now');
    this.by = by;
  }
}

const statements = new WeakMap<RecordSource, Map<string, string>>();

/** How a chunk is read and judged. To write it takes a millisecond, and bodies of one mapping have one source. */
function statementOf({ bundled: { source }, judge }: BatchedChunk): string {
  const known = statements.get(source) ?? new Map<string, string>();
  const options = JSON.stringify(judge);
  const statement = known.get(options) ?? judgeRecords(source, judge);
  statements.set(source, known.set(options, statement));
  return statement;
}

function* recordsOf(members: readonly BatchedChunk[]): Generator<Buffer> {
  for (const [n, { bundled }] of members.entries()) yield* bundled.records(BigInt(n) << BigInt(lineBits));
}

/** ClickHouse may have refused all of them because of one, or because together they need too much memory. */
function eachByItself(error: unknown): never {
  throw isRefusal(error) ? new NotRepeatable() : error;
}

async function sendBatch(
  store: Store,
  members: readonly [BatchedChunk, ...BatchedChunk[]],
): Promise<Batch | undefined> {
  const [first] = members;
  const hash = createHash('sha256');
  for (const { id, loadId } of members) hash.update(`${id} ${loadId}\n`);
  const token = hash.digest('hex');
  const ids = members.map(({ id }) => id);
  const heads = members.map(({ head }) => head);
  const stage = () =>
    insertData(store, {
      into: `incoming_staging (${judgedColumns.join(', ')}, batch, head)`,
      select: `SELECT *, ${quoted(token)} AS batch, transform(chunk, [${ids.map(quoted).join(', ')}], [${heads.map(quoted).join(', ')}], '') AS head
        FROM (${judgeRecords(first.bundled.source, first.judge, originOf(members))})`,
      format: 'RowBinary',
      data: recordsOf(members),
      settings: { ...insertSettings(`staging ${token}`), max_query_size: `${mostQueryBytes}` },
    });
  const isAlone = members.length === 1;
  try {
    await retrying(stage, retriesOf(members));
  } catch (error) {
    if (isAlone || !isRefusal(error)) throw error;
    return undefined;
  }
  await Promise.all(members.map((member) => member.note(token)));
  const stored = storeFor(store, members, token, ids);
  await (isAlone ? stored : stored.catch(eachByItself));
  return { token, unsettled: members.length };
}

const loadsOf = (members: readonly Pick<ChunkAgain, 'loadId'>[]): string[] =>
  members.map(({ loadId }) => loadId);

function retriesOf(members: readonly Pick<ChunkAgain, 'retries'>[]): RetryOptions {
  return {
    signal: members[0]?.retries.signal,
    onRetry: (error) => {
      for (const member of members) member.retries.onRetry?.(error);
    },
  };
}

/** Stores chunks of a batch for all of its members. */
async function storeFor(
  store: Store,
  members: readonly Pick<ChunkAgain, 'loadId' | 'before' | 'retries'>[],
  token: string,
  chunks: readonly string[],
): Promise<void> {
  const before = async () => {
    const refused = new Map<object, unknown>();
    await Promise.all(
      members.map((member) => member.before().catch((error: unknown) => refused.set(member, error))),
    );
    if (refused.size > 0) throw new Refused(refused);
  };
  const staged = { batch: token, chunks, token, loads: loadsOf(members) };
  await storeBatch({ store, ...retriesOf(members) }, staged, before);
}

/**
 * Stores what is held back of chunks. Repeating it changes nothing. In a cluster the publishers' side follows when the
 * events are on every shard: a retry adds what either lacks.
 * @param before called right before each attempt: a load may have slept since the one before
 * @param dedupe the only chunk, if events whose id is present are left out
 */
export async function storeBatch(
  ledger: Ledger,
  staged: StagedBatch,
  before: () => Promise<unknown>,
  dedupe?: string,
): Promise<void> {
  const { store } = ledger;
  const storing = (send: () => Promise<unknown>) => retrying(() => before().then(send), ledger);
  await storing(() => sendStaged(store, staged, dedupe));
  if (await retrying(() => layoutOf(store), ledger)) await storing(() => publish(store, staged));
}

/** Notes that a chunk of a batch counts as loaded. After the last of them nothing has to be held back any more. */
export async function settle(store: Store, batch: Batch): Promise<void> {
  batch.unsettled--;
  if (batch.unsettled === 0) await retrying(() => dropStaged(store, [batch.token]));
}
