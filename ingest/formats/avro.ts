import { type AvroBlock, AvroFile } from '../avro/file.ts';
import { avroFields, ownSchema } from '../avro/schema.ts';
import { ChunkChain } from '../chunks/chunk-chain.ts';
import type { KnownChunk, OpenInput, ReadOptions } from '../chunks/sendable-chunk.ts';
import { typedColumns } from '../event/typed-columns.ts';
import type { Input } from '../input/input.ts';
import type { Format } from './format.ts';

/** Object container files. */
export const avro: Format = {
  name: 'avro',
  endings: ['avro'],
  mediaTypes: ['application/avro', 'application/vnd.apache.avro'],
  clickhouse: 'Avro',
  open,
};

/** What makes a chunk. A block is never cut. */
const leastRows = 500_000;
/** A chunk is held in memory until it is sent, so that it can come from standard input, too. */
const mostBytes = 32 << 20;
/** Of the first block, by which a chunk is looked up. */
const headBytes = 1 << 16;

/** Chunks are runs of blocks, each sent with the header before them. */
async function open(
  input: Input,
  { reading, chunkBytes = mostBytes, onBytes, signal }: ReadOptions,
): Promise<OpenInput> {
  const opened = await AvroFile.open(input, onBytes, signal);
  try {
    const schema = ownSchema(input.name, opened.schema);
    const header = opened.headerWith(schema);
    const fields = avroFields(input.name, schema);
    const mapping = reading.mappingOf(fields.map(({ name }) => name));
    const source = typedColumns('Avro', input.name, fields, mapping);
    const chain = new ChunkChain(reading, opened.header);
    const headOf = ({ bytes }: AvroBlock) => chain.head(bytes.subarray(0, headBytes));
    /** Blocks that were read and belong to no chunk yet. */
    const ahead: AvroBlock[] = [];
    const blockAt = async (n: number) => {
      while (ahead.length <= n) {
        const block = await opened.next();
        if (!block) return undefined;
        ahead.push(block);
      }
      return ahead[n];
    };
    const limit = Math.min(chunkBytes, mostBytes);
    const first = await blockAt(0);
    return {
      begins: first ? headOf(first) : '',
      close: () => opened.close(),
      chunks: async function* (knownChunks) {
        let firstRow = 1;
        for (let next = await blockAt(0); next; next = await blockAt(0)) {
          const head = headOf(next);
          const found = await runsOf(blockAt, chain, await knownChunks(head), limit);
          const { content, candidates } = found;
          const run = ahead.splice(0, found.blocks);
          const rows = run.reduce((sum, block) => sum + block.rows, 0);
          const lastLine = firstRow + rows - 1;
          chain.pass(content);
          yield {
            ...{ id: chain.nameOf(content), head, content, candidates, source },
            rows: rows * reading.eventsPerRecord,
            bytes: run.reduce((sum, { bytes }) => sum + bytes.length, 0),
            release: () => {
              run.length = 0;
            },
            stream: () => ownFile(header, run),
            firstLine: firstRow,
            lastLine,
            firstByte: next.start,
            unit: 'row',
          };
          firstRow += rows;
        }
      },
    };
  } catch (error) {
    await opened.close();
    throw error;
  }
}

/**
 * How many blocks the next chunk has: those that it had when it was sent before, so that a file which has grown since only
 * adds what is new; else what fits.
 */
async function runsOf(
  blockAt: (n: number) => Promise<AvroBlock | undefined>,
  chain: ChunkChain,
  known: readonly KnownChunk[],
  limit: number,
): Promise<{ blocks: number; content: string; candidates: (KnownChunk & { matches: boolean })[] }> {
  const longest = known.reduce((most, { bytes }) => Math.max(most, bytes), 0);
  const hash = chain.begin();
  /** The ends of chunks that were sent before, and of what fits. */
  const ends = new Map<number, { blocks: number; content: string }>();
  let [bytes, rows, full] = [0, 0, 0];
  for (let n = 0; ; n++) {
    const block = await blockAt(n);
    const fits = block && (n === 0 || (bytes + block.bytes.length <= limit && rows < leastRows));
    if (!fits && full === 0) full = bytes;
    if (bytes > 0 && (bytes === full || known.some((each) => each.bytes === bytes))) {
      ends.set(bytes, { blocks: n, content: hash.copy().digest('hex') });
    }
    if (!block || (full > 0 && bytes >= longest)) break;
    hash.update(block.bytes);
    bytes += block.bytes.length;
    rows += block.rows;
  }
  const candidates = known.map((each) => ({
    ...each,
    matches: ends.get(each.bytes)?.content === each.content,
  }));
  const before = candidates.find(({ id, content, matches }) => matches && id === chain.nameOf(content));
  const end = ends.get(before?.bytes ?? full);
  if (!end) throw new Error('a chunk ends where no block does');
  return { ...end, candidates };
}

async function* ownFile(header: Buffer, run: readonly AvroBlock[]): AsyncGenerator<Buffer> {
  yield header;
  for (const { bytes } of run) yield bytes;
}
