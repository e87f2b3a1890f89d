/**
 * The seed of this run's tests of chance, which put it into their names: another one in every run, unless TEST_SEED
 * repeats one.
 */
export const testSeed = Number(process.env.TEST_SEED ?? Date.now() % 2 ** 31);

/** How often a test of chance repeats: as often as it says, or TEST_ROUNDS times as often. */
export const testRounds = (rounds: number): number => rounds * Number(process.env.TEST_ROUNDS ?? 1);

/** Numbers in [0, 1) that depend on the seed alone. */
export function seededRandom(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    // mulberry32
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}
