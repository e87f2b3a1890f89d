import pino, { type DestinationStream, type LevelWithSilent, type Logger } from 'pino';

/** JSON lines. A line that tells of an earlier moment brings its `time`. */
export function openLog(level: LevelWithSilent, destination: DestinationStream): Logger {
  return pino({ level, timestamp: false, mixin: () => ({ time: Date.now() }) }, destination);
}
