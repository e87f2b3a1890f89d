import type { Input } from './input.ts';
import { readerOfBytes } from './pieces.ts';

/** How the names of bodies begin that came over HTTP: no file has what they had. */
export const pushedFrom = 'push from ';

/** What is in memory already. */
export function heldInput(name: string, endings: readonly string[], whole: Buffer): Input {
  return {
    name,
    endings,
    isWhole: true,
    size: () => whole.length,
    readFrom: async (start) => {
      const rest = whole.subarray(start);
      return readerOfBytes(rest, rest.length);
    },
    readRange: async (target, start) => whole.copy(target, 0, start),
  };
}
