import { select } from '../../clickhouse/client.ts';
import { retrying } from '../../clickhouse/retry.ts';
import type { SendableChunk } from '../chunks/sendable-chunk.ts';
import { InputError } from '../input/input-error.ts';
import { firstAlive, type Ledger } from '../ledger/ledger.ts';
import { openRejects } from '../rejects/rejected-rows.ts';

/**
 * Read in another way the same bytes are another chunk, and would count a second time.
 * @throws {InputError} when ClickHouse has events or open rejected rows of them, or a running load is sending them; it
 * names the load
 */
export async function refuseLoadedOtherwise(
  ledger: Ledger,
  file: string,
  { unit, firstLine, firstLineHash, otherwise }: SendableChunk,
): Promise<void> {
  if (otherwise.length === 0) return;
  const params = { head: firstLineHash, chunks: otherwise.map(({ id }) => id) };
  const ask = <Row>(query: string) =>
    retrying(() => select<Row>(ledger.store, query, params), ledger.retries);
  // A statement for each: shards cannot look into both tables for each group.
  const claims = await ask<{ loadId: string; chunk: string }>(`
    SELECT c.load_id AS loadId, c.chunk AS chunk FROM load_chunks AS c
    WHERE head = unhex({head:String}) AND chunk IN {chunks:Array(String)}
    GROUP BY load_id, chunk ORDER BY toUInt64(max(c.loaded_at)) > 0 DESC, load_id DESC`);
  // First who is sending, then what is there: what a load has sent until it ended is seen.
  const sending = await firstAlive(ledger, claims);
  const stored = await ask<{ chunk: string }>(`
    SELECT chunk FROM chunk_days WHERE chunk IN {chunks:Array(String)}
    UNION DISTINCT
    SELECT chunk FROM rejected_rows FINAL WHERE chunk IN {chunks:Array(String)} AND ${openRejects}`);
  const loaded = claims.find(({ chunk }) => stored.some((each) => each.chunk === chunk))?.loadId;
  const load = loaded ?? sending;
  if (load === undefined) return;
  throw new InputError(
    `${file}: what begins at ${unit} ${firstLine} ${loaded ? 'was already loaded' : 'is being loaded'} as load ${load}, but read in another way (mapping, time zone or delimiter), and would count twice. Take that load back first (adtally unload ${load}), or load it all the same with --again`,
  );
}
