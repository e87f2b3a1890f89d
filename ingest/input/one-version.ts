import { type Input, versionOf } from './input.ts';
import { InputChanged, naming } from './input-error.ts';

/** An input that is replaced while it is read is read as often as this. */
const mostReadings = 5;

/**
 * Does work that reads an input, and does it anew where the input was replaced meanwhile and can be looked at again.
 * @param beforeAgain undoes what the work has done with the version before, also where it is given up
 * @throws {InputChanged} where it goes on being replaced, or is only a file
 */
export async function inOneVersion<T>(
  input: Input,
  work: () => Promise<T>,
  beforeAgain: (error: InputChanged) => Promise<void> = async () => {},
): Promise<T> {
  for (let readings = 1; ; readings++) {
    try {
      return await work();
    } catch (error) {
      if (!(error instanceof InputChanged) || !input.renew) throw error;
      await beforeAgain(error);
      if (readings === mostReadings) throw error;
      await naming(input.name, async () => input.renew?.());
    }
  }
}

/** @returns what looks at an input anew, and throws {@link InputChanged} where it is not what it is now */
export function looksAt(input: Input): () => Promise<void> {
  const before = versionOf(input);
  return async () => {
    await naming(input.name, async () => input.renew?.());
    if (versionOf(input) !== before) throw new InputChanged(`${input.name}: was changed while it was read`);
  };
}
