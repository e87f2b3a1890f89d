import { linesIn } from '../../ingest/chunks/count-records.ts';
import { shownRejects } from '../../ingest/delivery/chunk-outcome.ts';
import { ChannelMoved, PieceInDoubt } from '../../ingest/delivery/loaded-otherwise.ts';
import type { ValidMapping } from '../../ingest/event/mapping.ts';
import type { ChannelPiece } from '../../ingest/event/reading.ts';
import type { FormatName } from '../../ingest/formats/formats.ts';
import { firstObject } from '../../ingest/input/json-records.ts';
import type { Ledger } from '../../ingest/ledger/ledger.ts';
import { LoadRefused } from '../../ingest/ledger/load-error.ts';
import { committedOf } from '../../ingest/load/channels.ts';
import { Problem } from '../http/request/problems.ts';
import type { Received } from './received.ts';

/** A body as it came. */
export interface Body {
  readonly bytes: Buffer;
  readonly format: FormatName;
  readonly mapping: ValidMapping;
  /** The name of the token. */
  readonly sender: string;
}

/** Where a body begins in a stream of records that its sender has. */
export interface Piece {
  readonly channel: string;
  /** The number of its first record, from 0. */
  readonly offset: number;
}

/** As often a piece begins anew where others go on with its channel. */
const mostTries = 10;

/**
 * Loads what of a piece its channel does not have yet, one chunk after the other: where one is in doubt, nothing behind it is loaded.
 * @param load loads a chunk of it from a place in the channel on
 * @throws {Problem} for a piece with records missing before it, or with fewer than were begun before, and
 * {@link LoadRefused} for one that is not a whole record on each line
 */
export async function inChannel(
  ledger: Ledger,
  { piece, ...body }: Body & { readonly piece: Piece },
  load: (channel: ChannelPiece) => Promise<Received>,
): Promise<Received> {
  requireLines(body);
  const name = JSON.stringify([body.sender, piece.channel]);
  const end = piece.offset + linesIn(body.bytes).rows;
  let all: Received | undefined;
  for (let tries = 1; ; ) {
    const position = await committedOf(ledger, name);
    const known = position - piece.offset;
    if (known < 0) {
      const goesOn = `the channel goes on at ${position}: send the records from there on`;
      throw new Problem('offset_refused', goesOn, { committed: position });
    }
    try {
      const received = await load({ name, position, known });
      all = all ? together(all, received) : received;
      if (received.load === '' || (received.committed ?? end) >= end) return all;
      tries = 1;
    } catch (error) {
      if (error instanceof PieceInDoubt) {
        const { message, records } = error;
        const place = { committed: position, ...(records > 0 && { records }) };
        throw new Problem('offset_refused', message, place);
      }
      if (!(error instanceof ChannelMoved)) throw error;
      if (tries++ === mostTries) throw new Error('others send to the same channel', { cause: error });
    }
  }
}

/** What has become of one chunk and of the next. */
function together(before: Received, next: Received): Received {
  const sum = (figure: 'accepted' | 'rejected' | 'duplicates') => before[figure] + next[figure];
  return {
    ...(next.load === '' ? { ...before, committed: next.committed } : next),
    ...{ accepted: sum('accepted'), rejected: sum('rejected'), duplicates: sum('duplicates') },
    reasons: [...before.reasons, ...next.reasons].slice(0, shownRejects),
  };
}

/** Where records end in a text with quotes depends on what comes before, and in an array blanks belong to them. */
function requireLines({ bytes, format, mapping }: Body): void {
  const isArray = /^\s*\[/.test(bytes.subarray(0, 1_000).toString());
  if (format !== 'ndjson' || isArray)
    throw new LoadRefused('a channel takes NDJSON, a record on each line', 'Channel');
  if (mapping.events || mapping.records.length > 0 || mapping.skipLines > 0)
    throw new LoadRefused('a channel takes lines that are one event each', 'mapping');
  if (firstObject(bytes.subarray(bytes.lastIndexOf('\n') + 1)).depth > 0)
    throw new LoadRefused(
      'a channel takes whole records, and the last line of the body is cut off: its JSON object has no end',
      'Channel',
    );
}
