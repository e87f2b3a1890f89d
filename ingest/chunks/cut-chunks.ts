import type { ChunkChain } from './chunk-chain.ts';
import type { Candidate, KnownChunk, KnownChunks } from './sendable-chunk.ts';
import { type ChunkedText, hashAhead, type TakenChunk, takeChunk } from './take-chunk.ts';

export interface Chunk extends TakenChunk {
  readonly id: string;
  readonly head: string;
  readonly candidates: readonly Candidate[];
}

/**
 * Cuts a text at record ends into chunks, from where its reader is. What was sent before is cut where it was cut then,
 * so that a text which has grown since only adds what is new. Blank lines between chunks belong to none.
 * @throws {InputError} for a line that has no end within 16 MiB, and for a text that changes while it is read
 */
export async function* cutChunks(
  text: ChunkedText,
  chain: ChunkChain,
  knownChunks: KnownChunks,
): AsyncGenerator<Chunk> {
  while (await text.reader.skipBlankLines()) {
    const head = chain.head(await text.reader.peekLine());
    const candidates = await compared(text, chain, await knownChunks(head));
    const known = candidates.find(({ id, content, matches }) => matches && id === chain.nameOf(content));
    const taken = await takeChunk(text, known?.bytes, chain.begin());
    chain.pass(taken.content);
    yield { ...taken, id: chain.nameOf(taken.content), head, candidates };
  }
}

async function compared(
  text: ChunkedText,
  chain: ChunkChain,
  known: readonly KnownChunk[],
): Promise<Candidate[]> {
  const candidates: Candidate[] = [];
  for (const each of known) {
    const alike = candidates.find(({ content }) => content === each.content);
    const ahead = alike ? undefined : await hashAhead(text, each.bytes, chain.begin());
    candidates.push({ ...each, matches: alike?.matches ?? ahead === each.content });
  }
  return candidates;
}
