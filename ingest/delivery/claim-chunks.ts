import { type JudgedChunks, knownAs, type SendableChunk } from '../chunks/sendable-chunk.ts';
import type { Ledger } from '../ledger/ledger.ts';
import type { Load } from '../ledger/load.ts';
import { type Claim, claimChunk } from './chunk-claims.ts';
import type { AttemptStart } from './deliver-chunk.ts';
import { refuseLoadedOtherwise, refuseOtherBytes, requirePlace } from './loaded-otherwise.ts';
import type { Hold, Sender } from './sender.ts';

export interface ClaimedChunk {
  readonly chunk: SendableChunk;
  readonly claim: Claim;
  /** Before the chunk is sent, the server may restart, or others may take the load for dead. */
  readonly claimed: AttemptStart;
}

/**
 * Claims chunks in the order of the file: none is sent before the boundaries of those before it are in the ledger, so
 * that a load which continues after a crash cuts the file at the same places.
 * @param load absent for a dry run
 * @param unchanged looks whether the input still is what was read of it
 * @param again also bytes that were loaded before and read in another way
 * @param hold given where the chunks take the place of what is loaded, themselves included
 * @param judged what the command has judged before
 * @param key of the input; other bytes under it are refused
 * @param isPiece whether it is one of a channel; other bytes at its place are refused
 * @throws {InputError} for such bytes otherwise, {InputChanged} where the input is another one by now
 */
export async function* claimChunks(
  chunks: AsyncGenerator<SendableChunk>,
  ledger: Ledger,
  load: Load | undefined,
  sender: Sender,
  {
    file,
    key,
    isPiece = false,
    unchanged,
    again = false,
    hold,
    judged,
  }: {
    readonly file: string;
    readonly key?: string | undefined;
    readonly isPiece?: boolean;
    readonly unchanged: () => Promise<void>;
    readonly again?: boolean;
    readonly hold?: Hold | undefined;
    readonly judged?: JudgedChunks | undefined;
  },
): AsyncGenerator<ClaimedChunk> {
  for await (const chunk of chunks) {
    const claimed = { interruptions: sender.interruptions, at: performance.now() };
    if (key !== undefined) refuseOtherBytes(file, chunk);
    const place = async () => {
      if (isPiece) await requirePlace(ledger, file, chunk);
    };
    await place();
    if (!again && !isPiece) await refuseLoadedOtherwise(ledger, file, chunk, hold?.replaced);
    // Another load may have loaded what the input has become since this one has read it: then these bytes are a part of that.
    if (!knownAs(chunk) && chunk.candidates.some(({ matches }) => !matches)) await unchanged();
    const before = judged?.get(chunk.head)?.find(({ id }) => id === chunk.id)?.loadedRows;
    if (before !== undefined) yield { chunk, claimed, claim: { how: 'skip', rows: before } };
    else {
      const claim = hold ? firstClaim : await claimOf(ledger, load, chunk);
      // It may have waited behind others for its claim.
      await place();
      yield { chunk, claimed, claim };
    }
  }
}

/** Of what is only judged. */
const firstClaim = { how: 'send', loadTime: '1970-01-01 00:00:00' } as const;

async function claimOf(ledger: Ledger, load: Load | undefined, chunk: SendableChunk): Promise<Claim> {
  const loadedRows = knownAs(chunk)?.loadedRows;
  if (loadedRows !== undefined) return { how: 'skip', rows: loadedRows };
  if (load) return claimChunk(ledger, load, chunk);
  return firstClaim;
}
