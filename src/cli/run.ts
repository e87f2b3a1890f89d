import { type Command, CommanderError } from 'commander';
import { ConfigError } from '../config.ts';

/** Runs the command of the process and sets its exit code; errors are told on standard error. */
export async function run(program: Command): Promise<void> {
  // `rejects LOAD | head`: whoever reads has enough, which is no failure.
  let readerLeft = false;
  process.stdout.on('error', (error) => {
    if (!('code' in error) || error.code !== 'EPIPE') throw error;
    readerLeft = true;
  });
  try {
    await program.parseAsync();
  } catch (error) {
    if (readerLeft) return;
    if (error instanceof CommanderError) {
      // Commander has printed its own errors; asking for help is no error.
      if (error.code.startsWith('adtally.')) say(error.message);
      process.exitCode = error.exitCode === 0 ? 0 : 2;
    } else {
      const usage = error instanceof ConfigError;
      say(`error: ${error instanceof Error ? error.message || String(error) : String(error)}`);
      process.exitCode = usage ? 2 : 1;
    }
  }
}

function say(text: string): void {
  process.stderr.write(`${text}\n`);
}
