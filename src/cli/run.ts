import { type Command, CommanderError } from 'commander';
import { adviceOnUnreadable, unreadablePart } from '../../clickhouse/consistency/damaged-parts.ts';
import { MappingError } from '../../ingest/event/mapping.ts';
import { ConfigError } from '../config/config.ts';
import { InvalidRequest } from '../report/invalid-request.ts';
import { say } from './command/command.ts';

/** Runs the command of the process and sets its exit code; errors are written to standard error. */
export async function run(program: Command): Promise<void> {
  // `adtally rejects | head`: the reader has seen enough, which is not a failure.
  let readerLeft = false;
  // The disk is full, say. What is under way goes on to its end; one line says that its output is lost.
  let unwritten: Error | undefined;
  process.stdout.on('error', (error) => {
    if ('code' in error && error.code === 'EPIPE') readerLeft = true;
    else if (!unwritten) {
      unwritten = error;
      say(`error: the output cannot be written: ${error.message}`);
      // Behind the code that the command sets.
      process.once('exit', () => {
        process.exitCode = 1;
      });
    }
  });
  try {
    await program.parseAsync();
  } catch (error) {
    if (readerLeft || (unwritten && error === unwritten)) return;
    if (error instanceof CommanderError) {
      // Commander has printed its own errors; asking for help is not an error.
      if (error.code.startsWith('adtally.')) say(error.message);
      process.exitCode = error.exitCode === 0 ? 0 : 2;
    } else {
      const part = unreadablePart(error);
      if (part) say(`error: ${adviceOnUnreadable(part)}`);
      else say(`error: ${error instanceof Error ? error.message || withoutText(error) : String(error)}`);
      const isUsage = [ConfigError, MappingError, InvalidRequest].some((Kind) => error instanceof Kind);
      process.exitCode = isUsage ? 2 : 1;
    }
  }
}

/** What an error without a text is: one of several addresses of a name, or an empty answer. */
function withoutText(error: Error): string {
  if ('code' in error) return String(error.code);
  return 'ClickHouse, or what stands between, answered with an error and no text';
}
