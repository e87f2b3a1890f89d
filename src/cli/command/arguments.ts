import { CommanderError, InvalidArgumentError } from 'commander';
import * as z from 'zod';
import { longestTimerSeconds } from '../../../clickhouse/timings.ts';
import { delimiterNamed, noDelimiter } from '../../../ingest/formats/delimiter.ts';
import { encodingNamed, noEncoding } from '../../../ingest/input/text.ts';
import { endpointOf } from '../../../ingest/objects/object-stores.ts';

/** Wrong usage that no single argument shows: ends the command with exit code 2. */
export function usage(message: string): CommanderError {
  return new CommanderError(2, 'adtally.usage', `error: ${message}`);
}

/** @throws wrong usage when the range is inverted */
export function requireRange({ from, to }: { readonly from?: string; readonly to?: string }): void {
  if (from !== undefined && to !== undefined && to < from) throw usage(`--to ${to} is before --from ${from}`);
}

export function rejectLimit(text: string): { rows?: number; percent?: number } {
  const [, amount, percent] = /^(\d+(?:\.\d+)?)(%?)$/.exec(text) ?? [];
  const limit = Number(amount);
  if (amount === undefined || (percent ? limit > 100 : !Number.isInteger(limit))) {
    throw new InvalidArgumentError('Give a number of rows, such as 100, or a share of them, such as 0.5%.');
  }
  return percent ? { percent: limit } : { rows: limit };
}

/** `20%` as `20`. */
export function share(text: string): string {
  const [, percent] = /^(\d{1,6}(?:\.\d{1,6})?)%$/.exec(text) ?? [];
  if (percent === undefined) throw new InvalidArgumentError('Give a share, such as 5%.');
  return percent;
}

/** Two days that events can have, with `..` between them, or one day. */
export function eventDays(text: string): { readonly from: string; readonly to: string } {
  const [from = '', to = from, ...more] = text.split('..').map(day);
  if (from < '1971-01-01' || to > '2149-06-04')
    throw new InvalidArgumentError('Give days from 1971-01-01 to 2149-06-04.');
  if (more.length > 0 || to < from)
    throw new InvalidArgumentError('Give a day, or two such as 2026-10-31..2026-11-02, the earlier first.');
  return { from, to };
}

export function positiveInteger(text: string): number {
  const number = Number(text);
  if (!/^\d+$/.test(text) || !Number.isSafeInteger(number) || number < 1)
    throw new InvalidArgumentError('Give a whole number, 1 or more.');
  return number;
}

export function day(text: string): string {
  if (!z.iso.date().safeParse(text).success)
    throw new InvalidArgumentError('Give a date that exists, as yyyy-mm-dd.');
  return text;
}

export function accountId(text: string): string {
  if (text === '' || [...text].length > 128) throw new InvalidArgumentError('Give 1 to 128 characters.');
  return text;
}

const unitMs = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 } as const;

/** Milliseconds. */
export function duration(text: string): number {
  const [, number, unit] = /^(\d{1,6})([smhd])$/.exec(text) ?? [];
  if (Number(number) > 0) return Number(number) * unitMs[unit as keyof typeof unitMs];
  throw new InvalidArgumentError('Give a time such as 60s, 5m, 12h or 2d.');
}

/** Milliseconds between two looks. */
export function pause(text: string): number {
  const ms = duration(text);
  if (ms <= longestTimerSeconds * 1_000) return ms;
  throw new InvalidArgumentError('Give 24d at most.');
}

/** The address of a store of objects. */
export function endpoint(text: string): string {
  try {
    endpointOf(text);
    return text;
  } catch (error) {
    throw new InvalidArgumentError((error as Error).message);
  }
}

/** Of an option that may be given several times. */
export function repeated(text: string, before: readonly string[] = []): readonly string[] {
  return [...before, text];
}

/** One character between cells. */
export function cellDelimiter(given: string): string {
  const delimiter = delimiterNamed(given);
  if (delimiter === undefined) throw new InvalidArgumentError(noDelimiter(given, false));
  return delimiter;
}

/** The name by which TextDecoder knows an encoding. */
export function textEncoding(given: string): string {
  const encoding = encodingNamed(given);
  if (encoding === undefined) throw new InvalidArgumentError(noEncoding(given));
  return encoding;
}
