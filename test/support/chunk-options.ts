/** Options that only tests have, see chunked-cli.ts. */
export const chunkOptions = { bytes: '--chunk-bytes', parallel: '--parallel' };

/** The program that understands a command line. */
export function cliFor(args: readonly string[]): 'src/cli' | 'test/support/chunked-cli' {
  return Object.values(chunkOptions).some((option) => args.includes(option))
    ? 'test/support/chunked-cli'
    : 'src/cli';
}
