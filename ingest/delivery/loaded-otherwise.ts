import { loadOfChunk } from '../../clickhouse/came-between.ts';
import { knownAs, type SendableChunk } from '../chunks/sendable-chunk.ts';
import { InputError } from '../input/input-error.ts';
import { hint } from '../input/option-hint.ts';
import { ask, type Ledger } from '../ledger/ledger.ts';
import { openRejects } from '../rejects/rejected-rows.ts';

/** The bytes are loaded already, and would count twice. */
export class LoadedOtherwise extends InputError {}

/** The key of an input is that of other bytes. */
export class KeyReused extends InputError {}

/** @throws {KeyReused} when the ledger has other bytes under the key of an input */
export function refuseOtherBytes(file: string, { candidates }: SendableChunk): void {
  if (candidates.every(({ matches }) => matches)) return;
  throw new KeyReused(`${file}: other bytes came under this key before`);
}

/** Another load has gone on with the channel since it was looked at. */
export class ChannelMoved extends InputError {}

/** What comes next in a channel was sent before, and nobody knows whether it has arrived. */
export class PieceInDoubt extends InputError {
  /** So many have to come in one piece; 0 where that is not known. */
  readonly records: number;

  constructor(message: string, records: number) {
    super(message);
    this.records = records;
  }
}

/**
 * At each place of a channel one chunk is loaded. A chunk that was sent and is in doubt keeps its place, until it comes again or the
 * load that sent it last was taken back.
 * @throws {ChannelMoved} when another chunk, or this one, is loaded there, {@link PieceInDoubt} when another may be
 */
export async function requirePlace(
  ledger: Ledger,
  file: string,
  { head, id, candidates }: SendableChunk,
): Promise<void> {
  const moved = new ChannelMoved(`${file}: another load has gone on with the channel meanwhile`);
  if (candidates.some((each) => each.id === id && each.loadedRows !== undefined)) throw moved;
  const others = candidates.filter((each) => each.id !== id);
  if (others.length === 0) return;
  // A statement for each: shards cannot look into both tables for each group.
  const sent = await ask<{ loaded: 0 | 1; records: number; load: string }>(
    ledger,
    `SELECT toUInt8(toUInt64(max(c.loaded_at)) > 0) AS loaded, toFloat64(max(c.records)) AS records, argMax(c.load_id, c.sent_at) AS load
     FROM load_chunks AS c WHERE head = unhex({head:String}) AND chunk IN {chunks:Array(String)}
     GROUP BY chunk HAVING toUInt64(max(c.sent_at)) > 0`,
    { head, chunks: others.map((each) => each.id) },
  );
  if (sent.some(({ loaded }) => loaded)) throw moved;
  const takenBack = await ask<{ load: string }>(
    ledger,
    "SELECT load_id AS load FROM loads FINAL WHERE state = 'unloaded' AND load_id IN {loads:Array(String)}",
    { loads: sent.map(({ load }) => load) },
  );
  const inDoubt = sent.find(({ load }) => !takenBack.some((each) => each.load === load));
  if (!inDoubt) return;
  const { records, load } = inDoubt;
  throw new PieceInDoubt(
    `${file}: nobody knows whether ${records || 'the'} records have arrived that were sent before. Send the same lines again, all in one body, through the same mapping; or, where they are gone, have load ${load} taken back (adtally unload)`,
    records,
  );
}

/** Chunks in doubt that were withdrawn, and whose load was not taken back to the end: rollups may still have their events. */
const halfTakenBack = `
  SELECT chunk FROM withdrawn_chunks WHERE day > toDate(0) AND chunk IN (
    SELECT chunk FROM load_chunks AS c WHERE head = unhex({head:String}) AND chunk IN {chunks:Array(String)}
    GROUP BY chunk HAVING toUInt64(max(c.loaded_at)) = 0 AND ${loadOfChunk} NOT IN (
      SELECT load_id FROM loads FINAL WHERE state = 'unloaded'
        AND load_id IN (SELECT load_id FROM load_chunks WHERE head = unhex({head:String}))))`;

/**
 * Read in another way the same bytes are another chunk, and would count a second time.
 * @param replaced loads that do not count
 * @throws {InputError} when ClickHouse has events or open rejected rows of them; it names the load
 */
export async function refuseLoadedOtherwise(
  ledger: Ledger,
  file: string,
  chunk: SendableChunk,
  replaced: readonly string[] = [],
): Promise<void> {
  const known = knownAs(chunk);
  if (known?.loadedRows !== undefined) return;
  // Where it is in doubt, or was taken back: longer and shorter ones may have been cut from the same input, read as it is now.
  const otherwise = chunk.candidates.filter(
    ({ id, content, matches }) => matches && id !== chunk.id && (!known || content === known.content),
  );
  if (otherwise.length === 0) return;
  const params = { head: chunk.head, chunks: otherwise.map(({ id }) => id) };
  const found = <Row>(query: string) => ask<Row>(ledger, query, params);
  // A statement for each: shards cannot look into both tables for each group.
  const claims = await found<{ loadId: string; chunk: string }>(`
    SELECT c.load_id AS loadId, c.chunk AS chunk FROM load_chunks AS c
    WHERE head = unhex({head:String}) AND chunk IN {chunks:Array(String)}
    GROUP BY load_id, chunk ORDER BY toUInt64(max(c.loaded_at)) > 0 DESC, load_id DESC`);
  const stored = await found<{ chunk: string }>(`
    SELECT chunk FROM chunk_days WHERE chunk IN {chunks:Array(String)}
    UNION DISTINCT
    SELECT chunk FROM rejected_rows FINAL WHERE chunk IN {chunks:Array(String)} AND ${openRejects}
    UNION DISTINCT ${halfTakenBack}`);
  const load = claims.find(
    (claim) => !replaced.includes(claim.loadId) && stored.some((each) => each.chunk === claim.chunk),
  )?.loadId;
  if (load === undefined) return;
  throw new LoadedOtherwise(
    `${file}: what begins at ${chunk.unit} ${chunk.firstLine} was already loaded as load ${load}, but read in another way (mapping, time zone or delimiter), and would count twice. Take that load back first (adtally unload ${load}), or let it count twice${hint('--again', 'an Idempotency-Key', 'loads it all the same')}`,
  );
}
