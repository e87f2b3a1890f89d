import { onTestFinished } from 'vitest';
import type { SendableChunk } from '../../ingest/chunks/sendable-chunk.ts';
import { plainReading } from '../../ingest/event/reading.ts';
import { formatOf } from '../../ingest/formats/formats.ts';
import { LocalFile } from '../../ingest/input/local-file.ts';

/** The first chunk of a file that the store does not know. The file stays open until the test has ended. */
export async function onlyChunk(path: string, pieceBytes = 4 << 20): Promise<SendableChunk> {
  const input = new LocalFile(path);
  const opened = await formatOf(input).open(input, {
    ...{ chunkBytes: 64 << 20, pieceBytes },
    reading: plainReading(path),
    onBytes: () => {},
  });
  onTestFinished(() => opened.close());
  for await (const chunk of opened.chunks(async () => [])) return chunk;
  throw new Error(`${path} is empty`);
}
