import type { IncomingMessage } from 'node:http';

export interface SlowReading {
  /** The whole body; rejects when it breaks off. */
  readonly text: Promise<string>;
  /** Bytes read so far. */
  readonly bytes: number;
  /** Reads the rest as fast as it comes. */
  hurry(): void;
}

/** Reads an answer at a steady rate, as over a narrow line. */
export function readAt(answer: IncomingMessage, bytesPerSecond: number): SlowReading {
  const pieces: Buffer[] = [];
  let bytes = 0;
  const startedAt = performance.now();
  const keep = (piece: Buffer) => {
    pieces.push(piece);
    bytes += piece.length;
  };
  const read = () => {
    const due = ((performance.now() - startedAt) / 1000) * bytesPerSecond;
    for (let room = due - bytes; room > 0; room = due - bytes) {
      const piece = answer.read(Math.min(Math.ceil(room), answer.readableLength) || 1);
      if (piece === null) break;
      keep(piece);
    }
  };
  const reading = setInterval(read, 50);
  const text = new Promise<string>((resolve, reject) => {
    answer.once('end', () => resolve(Buffer.concat(pieces).toString())).once('error', reject);
  }).finally(() => clearInterval(reading));
  // Whoever is interested looks later.
  text.catch(() => undefined);
  return {
    text,
    get bytes() {
      return bytes;
    },
    hurry: () => {
      clearInterval(reading);
      answer.on('data', keep);
    },
  };
}
