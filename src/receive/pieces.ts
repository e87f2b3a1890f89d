import type { Store } from '../../clickhouse/client.ts';
import { ChannelMoved, PieceInDoubt } from '../../ingest/delivery/loaded-otherwise.ts';
import type { ValidMapping } from '../../ingest/event/mapping.ts';
import type { ChannelPiece } from '../../ingest/event/reading.ts';
import type { Format } from '../../ingest/formats/format.ts';
import { type FormatName, formats } from '../../ingest/formats/formats.ts';
import { openLedger } from '../../ingest/ledger/ledger.ts';
import { LoadRefused } from '../../ingest/ledger/load-error.ts';
import { committedOf } from '../../ingest/load/channels.ts';

/** Where a body begins in a stream of records that its sender has. */
export interface Piece {
  readonly channel: string;
  /** The number of its first record, from 0. */
  readonly offset: number;
}

/** A piece that does not go on where its channel has come to. */
export class OffsetRefused extends Error {
  /** The offset of the record that the channel goes on with. */
  readonly committed: number;

  constructor(message: string, committed: number) {
    super(message);
    this.committed = committed;
  }
}

/** As often a piece begins anew where others go on with its channel. */
const mostTries = 10;

/**
 * Loads what of a piece its channel does not have yet.
 * @param load loads it from a place in the channel on
 * @throws {OffsetRefused} for a piece that begins behind what there is, or holds less than what was begun before, and
 * {@link LoadRefused} for one whose records cannot be counted here
 */
export async function inChannel<Result>(
  { store, signal }: { readonly store: Store; readonly signal: AbortSignal },
  {
    sender,
    piece,
    format,
    mapping,
  }: {
    readonly sender: string;
    readonly piece: Piece;
    readonly format: FormatName;
    readonly mapping: ValidMapping;
  },
  load: (channel: ChannelPiece) => Promise<Result>,
): Promise<Result> {
  const { text }: Format = formats[format];
  if (!text) throw new LoadRefused('a channel takes text, such as NDJSON and CSV', 'Channel');
  if (mapping.events) throw new LoadRefused('a channel takes records that are one event each', 'mapping');
  const ledger = openLedger(store, { signal });
  const name = JSON.stringify([sender, piece.channel]);
  for (let tries = 1; ; tries++) {
    const position = await committedOf(ledger, name);
    const known = position - piece.offset;
    if (known < 0) {
      throw new OffsetRefused(`the channel goes on at ${position}: send the records from there on`, position);
    }
    try {
      return await load({ name, position, known });
    } catch (error) {
      // What of it comes before that may have been loaded.
      if (error instanceof PieceInDoubt)
        throw new OffsetRefused(error.message, await committedOf(ledger, name));
      if (!(error instanceof ChannelMoved)) throw error;
      if (tries === mostTries) throw new Error('others send to the same channel', { cause: error });
    }
  }
}
