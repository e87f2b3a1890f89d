import type { Input } from './input.ts';
import { readerOfBytes } from './pieces.ts';

/** The names of bodies that came over HTTP begin with it. They have no file. */
export const pushedFrom = 'push from ';

/** What is in memory already. */
export function heldInput(name: string, endings: readonly string[], whole: Buffer): Input {
  return {
    name,
    endings,
    isWhole: true,
    isSent: true,
    size: () => whole.length,
    readFrom: async (start) => {
      const rest = whole.subarray(start);
      return readerOfBytes(rest, rest.length);
    },
    readRange: async (target, start) => whole.copy(target, 0, start),
  };
}
