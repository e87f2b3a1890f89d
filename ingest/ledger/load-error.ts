import { ClickHouseError } from '@clickhouse/client';
import { InputError } from '../input/input-error.ts';

/** ClickHouse failed during a load; the message names the file and says how to continue. */
export class LoadError extends Error {
  override readonly name = 'LoadError';
}

/** The load was asked to stop; rows already loaded are kept. */
export class Stopped extends Error {}

/**
 * What the caller of a load gets for a failure: `Stopped` if it comes of the signal, `InputError` if of what is in a block
 * of Avro, `LoadError` if of ClickHouse.
 */
export function loadFailure(error: unknown, file: string, signal: AbortSignal | undefined): unknown {
  if (signal?.aborted && comesOfAbort(error)) return new Stopped('stopped', { cause: error });
  const undecoded =
    error instanceof Error && /avro::Exception, e\.what\(\) = (.*?)(?: \(version|$)/m.exec(error.message);
  if (undecoded) {
    const what = `is a damaged Avro file: the records of a block cannot be decoded: ${undecoded[1]}`;
    return new InputError(`${file}: ${what}. Rows already loaded are kept.`, { cause: error });
  }
  if (!(error instanceof Error) || !comesOfClickHouse(error)) return error;
  const reason = (error.message.split('\n')[0] ?? '').trim().replace(/\.?$/, '.');
  return new LoadError(
    `${file}: ClickHouse failed: ${reason} Rows already loaded are kept. Run the same command again to continue.`,
    { cause: error },
  );
}

function comesOfAbort(error: unknown): boolean {
  return (
    error instanceof Error &&
    [error, error.cause].some((each) => each instanceof Error && each.name === 'AbortError')
  );
}

function comesOfClickHouse(error: Error): boolean {
  return error instanceof ClickHouseError || 'syscall' in error || /socket hang up/.test(error.message);
}
