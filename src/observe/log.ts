import pino, { type DestinationStream, type LevelWithSilent, type Logger } from 'pino';

/** JSON lines. A line about an earlier moment brings its own `time`. */
export function openLog(level: LevelWithSilent, destination: DestinationStream): Logger {
  // An error of ioredis carries the command that failed; that of a login has the password.
  const redact = { paths: ['err.command'], remove: true };
  return pino(
    {
      level,
      redact,
      timestamp: false,
      mixin: () => ({ time: Date.now() }),
      mixinMergeStrategy: (line, now) => ('time' in line ? line : Object.assign(now, line)),
    },
    destination,
  );
}

/** Writes the lines of a turn of the event loop in one go, and those of the last turn when the process ends. */
export function turnByTurn(destination: DestinationStream): DestinationStream {
  let lines = '';
  const flush = () => {
    const written = lines;
    lines = '';
    if (written !== '') destination.write(written);
  };
  process.once('exit', flush);
  return {
    write(line) {
      if (lines === '') setImmediate(flush);
      lines += line;
    },
  };
}

/**
 * Logs what repeats every second or two at most once a minute: a failure, or a warning with its `err`.
 * @param stopping what a stop breaks off is no fault
 */
export function throttledErrorLog(
  log: Logger,
  message: string,
  level: 'error' | 'warn' = 'error',
  stopping?: AbortSignal,
): (error: unknown) => void {
  let quietUntil = 0;
  return (err) => {
    if (stopping?.aborted || performance.now() < quietUntil) return;
    quietUntil = performance.now() + 60_000;
    log[level]({ err }, message);
  };
}
