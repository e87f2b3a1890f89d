import { select } from '../../clickhouse/client.ts';
import { retrying } from '../../clickhouse/retry.ts';
import { knownAs, type SendableChunk } from '../chunks/sendable-chunk.ts';
import { InputError } from '../input/input-error.ts';
import { hint } from '../input/option-hint.ts';
import type { Ledger } from '../ledger/ledger.ts';
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
  /** So many records have to come in one piece. */
  readonly records: number;

  constructor(message: string, records: number) {
    super(message);
    this.records = records;
  }
}

/**
 * @throws {ChannelMoved} when other bytes are loaded at this place of a channel, and {@link PieceInDoubt} when others may be,
 * such as those of a larger piece
 */
export async function refuseOtherPiece(
  { store, retries }: Ledger,
  file: string,
  { head, candidates }: SendableChunk,
): Promise<void> {
  const others = candidates.filter(({ matches }) => !matches);
  if (others.length === 0) return;
  const query = `
    SELECT toUInt8(toUInt64(max(c.loaded_at)) > 0) AS loaded, toFloat64(max(c.records)) AS records, argMax(c.load_id, c.sent_at) AS load
    FROM load_chunks AS c WHERE head = unhex({head:String}) AND chunk IN {chunks:Array(String)}
      AND c.load_id NOT IN (SELECT load_id FROM loads FINAL WHERE state = 'unloaded')
    HAVING count() > 0`;
  const params = { head, chunks: others.map(({ id }) => id) };
  const [sent] = await retrying(
    () => select<{ loaded: 0 | 1; records: number; load: string }>(store, query, params),
    retries,
  );
  if (!sent) return;
  if (sent.loaded) throw new ChannelMoved(`${file}: another load has gone on with the channel meanwhile`);
  throw new PieceInDoubt(
    `${file}: ${sent.records || 'some'} records were sent from here before, and nobody knows whether they have arrived: send the same bytes of them again, and no fewer in one piece. Where they are gone, load ${sent.load} is to be taken back (adtally unload)`,
    sent.records,
  );
}

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
  const otherwise = knownAs(chunk) ? [] : chunk.candidates.filter(({ matches }) => matches);
  if (otherwise.length === 0) return;
  const params = { head: chunk.head, chunks: otherwise.map(({ id }) => id) };
  const ask = <Row>(query: string) =>
    retrying(() => select<Row>(ledger.store, query, params), ledger.retries);
  // A statement for each: shards cannot look into both tables for each group.
  const claims = await ask<{ loadId: string; chunk: string }>(`
    SELECT c.load_id AS loadId, c.chunk AS chunk FROM load_chunks AS c
    WHERE head = unhex({head:String}) AND chunk IN {chunks:Array(String)}
    GROUP BY load_id, chunk ORDER BY toUInt64(max(c.loaded_at)) > 0 DESC, load_id DESC`);
  const stored = await ask<{ chunk: string }>(`
    SELECT chunk FROM chunk_days WHERE chunk IN {chunks:Array(String)}
    UNION DISTINCT
    SELECT chunk FROM rejected_rows FINAL WHERE chunk IN {chunks:Array(String)} AND ${openRejects}`);
  const load = claims.find(
    (claim) => !replaced.includes(claim.loadId) && stored.some((each) => each.chunk === claim.chunk),
  )?.loadId;
  if (load === undefined) return;
  throw new LoadedOtherwise(
    `${file}: what begins at ${chunk.unit} ${chunk.firstLine} was already loaded as load ${load}, but read in another way (mapping, time zone or delimiter), and would count twice. Take that load back first (adtally unload ${load}), or let it count twice${hint('--again', 'an Idempotency-Key', 'loads it all the same')}`,
  );
}
