import { CommanderError, InvalidArgumentError } from 'commander';
import { z } from 'zod';

/** Wrong usage: ends the command with exit code 2. */
export function usage(message: string): CommanderError {
  return new CommanderError(2, 'adtally.usage', message);
}

export function rejectLimit(text: string): { rows?: number; percent?: number } {
  const [, amount, percent] = /^(\d+(?:\.\d+)?)(%?)$/.exec(text) ?? [];
  const limit = Number(amount);
  if (amount === undefined || (percent ? limit > 100 : !Number.isInteger(limit))) {
    throw new InvalidArgumentError('It must be a number of rows, or a share such as 0.5%.');
  }
  return percent ? { percent: limit } : { rows: limit };
}

export function positiveInteger(text: string): number {
  const number = Number(text);
  if (!Number.isSafeInteger(number) || number < 1)
    throw new InvalidArgumentError('It must be a whole number above 0.');
  return number;
}

export function day(text: string): string {
  if (!z.iso.date().safeParse(text).success)
    throw new InvalidArgumentError('It must be a day that exists, as yyyy-mm-dd.');
  return text;
}

export function instant(text: string): Date {
  if (!z.union([z.iso.date(), z.iso.datetime({ offset: true })]).safeParse(text).success) {
    throw new InvalidArgumentError('It must be yyyy-mm-dd or an ISO 8601 time such as 2027-01-31T12:00:00Z.');
  }
  return new Date(text);
}

export function accountId(text: string): string {
  if (text === '' || [...text].length > 128)
    throw new InvalidArgumentError('It must have 1 to 128 characters.');
  return text;
}
