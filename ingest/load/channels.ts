import { insertData, select } from '../../clickhouse/client.ts';
import { channelHead } from '../chunks/chunk-chain.ts';
import { type Ledger, repeated } from '../ledger/ledger.ts';

/**
 * The number of the record of a channel, from 0, before which all are loaded. It is noted before the next chunk is loaded, so
 * beyond what is noted there is one chunk at most, which may be taken back without a gap before others.
 */
export async function committedOf(ledger: Ledger, channel: string): Promise<number> {
  const noted = await notedPosition(ledger, channel);
  let position = noted;
  for (;;) {
    const head = channelHead(channel, position);
    const records = await loadedFrom(ledger, head);
    position += records;
    if (records > 0) continue;
    if (position > noted) await noteCommitted(ledger, { channel, position });
    return position;
  }
}

/** Notes how far a channel has come. */
export const noteCommitted = repeated<{ channel: string; position: number }, void>(async (store, places) => {
  await insertData(store, {
    into: 'channels (channel, position)',
    select: "SELECT channel, position FROM input('channel String, position UInt64')",
    format: 'JSONEachRow',
    data: [places.map((place) => JSON.stringify(place)).join('\n')],
    settings: {},
  });
  return places.map(() => undefined);
});

const notedPosition = repeated<string, number>(async (store, channels) => {
  const query = `SELECT channel, toFloat64(max(c.position)) AS position FROM channels AS c
    WHERE channel IN {channels:Array(String)} GROUP BY channel`;
  const rows = await select<{ channel: string; position: number }>(store, query, { channels });
  const positions = new Map(rows.map(({ channel, position }) => [channel, position]));
  return channels.map((channel) => positions.get(channel) ?? 0);
});

/** Records of the piece that is loaded from a place on; 0 where none is. */
const loadedFrom = repeated<string, number>(async (store, heads) => {
  const query = `
    SELECT lower(hex(c.head)) AS first, toFloat64(max(c.records)) AS records FROM load_chunks AS c
    WHERE head IN (SELECT toFixedString(unhex(arrayJoin({heads:Array(String)})), 32)) AND toUInt64(c.loaded_at) > 0
    GROUP BY head`;
  const rows = await select<{ first: string; records: number }>(store, query, { heads });
  const records = new Map(rows.map(({ first, records }) => [first, records]));
  return heads.map((head) => records.get(head) ?? 0);
});
