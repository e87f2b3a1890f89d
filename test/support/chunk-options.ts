/** An option that only tests have, see chunked-cli.ts. */
export const chunkBytes = '--chunk-bytes';

/** The program that understands a command line. */
export function cliFor(args: readonly string[]): 'src/cli' | 'test/support/chunked-cli' {
  return args.includes(chunkBytes) ? 'test/support/chunked-cli' : 'src/cli';
}
