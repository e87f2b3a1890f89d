import type { Input } from './input.ts';

export type Compression = 'none' | 'gzip' | 'zstd' | 'brotli';

/** By the last ending of a name. */
export const compressions: ReadonlyMap<string, Compression> = new Map([
  ['gz', 'gzip'],
  ['zst', 'zstd'],
  ['br', 'brotli'],
]);

/** What the name says; the first bytes may say otherwise (see `compressionOf`). */
export function compressionNamed({ endings }: Input): Compression {
  return compressions.get(endings.at(-1) ?? '') ?? 'none';
}
