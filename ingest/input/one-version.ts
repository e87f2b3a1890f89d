import type { Input } from './input.ts';
import { fileError, InputChanged } from './input-error.ts';

/** An input that is replaced while it is read is read as often as this. */
const mostReadings = 5;

/**
 * Does work that reads an input, and does it anew where the input was replaced meanwhile and can be looked at again.
 * @param beforeAgain undoes what the work has done with the version before
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
      if (!(error instanceof InputChanged) || !input.renew || readings === mostReadings) throw error;
      await beforeAgain(error);
      await input.renew().catch((cause: unknown) => {
        throw fileError(input.name, cause);
      });
    }
  }
}
