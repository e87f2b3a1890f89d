import { addAbortSignal, type Readable } from 'node:stream';
import type { Input, InputReader } from './input.ts';
import { readerOf } from './pieces.ts';

/** NDJSON, unless another format is asked for. */
export const standardInput: Input = {
  name: '-',
  endings: ['ndjson'],
  size: () => undefined,
  readFrom: async (_start, signal) => readerOfStream(process.stdin, signal),
  readRange: () => Promise.reject(new Error('standard input can be read only once')),
};

/** What comes once: standard input or a pipe. */
export function readerOfStream(stream: Readable, signal?: AbortSignal): InputReader {
  if (signal) addAbortSignal(signal, stream);
  const { read } = readerOf(stream, async () => {});
  return { read, close: async () => void stream.destroy() };
}
