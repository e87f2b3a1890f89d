import type { Input } from './input.ts';

/** What is looked at to see what an input is: more of it need not be shown at once. */
const headBytes = 64 << 10;

/** What is in memory already. */
export function heldInput(name: string, endings: readonly string[], whole: Buffer): Input {
  const fill = (target: Buffer, start: number) => whole.copy(target, 0, start);
  return {
    name,
    endings,
    isWhole: true,
    size: () => whole.length,
    readFrom: async (start) => {
      const rest = whole.subarray(start);
      let at = start;
      const read = async (target: Buffer) => {
        const bytes = fill(target, at);
        at += bytes;
        return bytes;
      };
      return {
        ...(rest.length <= headBytes && { whole: rest }),
        size: rest.length,
        read,
        close: async () => {},
      };
    },
    readRange: async (target, start) => fill(target, start),
  };
}
