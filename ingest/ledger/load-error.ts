import { ClickHouseError } from '@clickhouse/client';
import { isTransient, titleOfPage } from '../../clickhouse/retry.ts';
import { InputError } from '../input/input-error.ts';

/** ClickHouse failed during a load, or others have gone ahead of it; the message says how to continue. */
export class LoadError extends Error {
  override readonly name = 'LoadError';
}

/** What was asked for cannot be done with the load that was named, or what `field` names, and nothing was changed. */
export class LoadRefused extends Error {
  readonly field: string;

  constructor(message: string, field = 'load') {
    super(message);
    this.field = field;
  }
}

/** The load was asked to stop; rows already loaded are kept. */
export class Stopped extends Error {}

/**
 * What the caller of a load gets for a failure: `Stopped` if it comes of the signal, `InputError` if of what is in a
 * file of Avro or Parquet, `LoadError` if of ClickHouse.
 */
export function loadFailure(error: unknown, file: string, signal: AbortSignal | undefined): unknown {
  if (signal?.aborted && comesOfAbort(error)) return new Stopped('stopped', { cause: error });
  const unread = unreadable(error);
  if (unread) return new InputError(`${file}: ${unread}. Rows already loaded are kept.`, { cause: error });
  if (!(error instanceof Error) || !comesOfClickHouse(error)) return error;
  const title = titleOfPage(error);
  const who = title === undefined ? 'ClickHouse failed' : 'something in front of ClickHouse answered';
  const reason = (title ?? error.message.split('\n')[0] ?? '').trim().replace(/\.?$/, '.');
  return new LoadError(
    `${file}: ${who}: ${reason} Rows already loaded are kept. Run the same command again to continue.`,
    { cause: error },
  );
}

/** Types of errors that are never the fault of a file. */
const ofStore = new Set([
  'NOT_ENOUGH_SPACE',
  'CANNOT_SCHEDULE_TASK',
  'CANNOT_ALLOCATE_MEMORY',
  'READONLY',
  'ACCESS_DENIED',
  'AUTHENTICATION_FAILED',
  'UNKNOWN_DATABASE',
  'UNKNOWN_TABLE',
]);

/** Whether a failure is one of a busy server, or of a store that lacks something: the same data may be stored later. */
const isOfStore = (error: ClickHouseError): boolean => isTransient(error) || ofStore.has(error.type ?? '');

/** Whether ClickHouse does not take what it was sent, and may take something else, or less of it. */
export const isRefusal = (error: unknown): error is ClickHouseError =>
  error instanceof ClickHouseError && !isOfStore(error);

/** Whether a failure is one of the input, or of what ClickHouse makes of it: others may be loaded all the same. */
export function isOfInput(error: unknown): error is Error {
  if (error instanceof InputError || (error instanceof LoadError && error.cause === undefined)) return true;
  return isRefusal(error instanceof LoadError ? error.cause : error);
}

/** Whether a statement lacked memory or time, or was ended by somebody, whatever it read. */
export const wasEnded = ({ type = '' }: ClickHouseError): boolean =>
  /^((MEMORY_LIMIT|TIMEOUT)_EXCEEDED|QUERY_WAS_CANCELLED)$/.test(type);

/** What the engine could not decode of a file with a schema, in words. */
export function unreadable(error: unknown): string | undefined {
  if (!(error instanceof Error)) return undefined;
  // Whatever ends a statement names the column that is being read.
  if (error instanceof ClickHouseError && (isOfStore(error) || wasEnded(error))) return undefined;
  const { message } = error;
  const [, avro] = /avro::Exception, e\.what\(\) = (.*?)(?: \(version|$)/m.exec(message) ?? [];
  if (avro) return `is a damaged Avro file: the records of a block cannot be decoded: ${avro}`;
  const [, record] =
    /^(?:Code: .*?Exception: )?(.*?)(?:: \(at row \d+\)\n)?: While executing Avro/.exec(message) ?? [];
  if (record) return `its records cannot be read: ${record}`;
  // ClickHouse says this before it reads a column. Whatever else ends it there may be its own lack of threads or memory.
  const [, decimal] = /(Parquet decimal type .*?): While executing Parquet/.exec(message) ?? [];
  if (decimal) return `it cannot be read: ${decimal}; write the file anew`;
  const [, reason, column] =
    /^(?:Code: .*?Exception: )?(.*?): read stage: \w+: column: (.*?): While executing Parquet/.exec(
      message,
    ) ?? [];
  return reason && `column ${column} cannot be read: ${reason}; write the file anew`;
}

function comesOfAbort(error: unknown): boolean {
  return (
    error instanceof Error &&
    [error, error.cause].some((each) => each instanceof Error && each.name === 'AbortError')
  );
}

function comesOfClickHouse(error: Error): boolean {
  return (
    error instanceof ClickHouseError ||
    'syscall' in error ||
    /socket hang up/.test(error.message) ||
    titleOfPage(error) !== undefined
  );
}
