import * as z from 'zod';

/** A time as the body of a request has it. */
export const changedSince = z.iso.datetime({
  offset: true,
  error: ({ input }) =>
    input === undefined
      ? 'is required; for every day: 1970-01-01T00:00:00Z'
      : 'must be a time as RFC 3339 writes it, such as 2026-11-20T08:00:00Z or the changed_until of an answer',
});

/** A time in an answer: RFC 3339, to the microsecond. */
export const time = z.string().meta({ format: 'date-time' });

const latest = BigInt(Date.UTC(2200, 0, 1)) * 1000n;

/** Microseconds since 1970, as text; times before that, and after the year 2200, are those. */
export function microsecondsOf(time: string): string {
  const [, until = '', fraction = '', zone = ''] = /^(.*?)(?:\.(\d+))?(Z|[+-][\d:]+)$/.exec(time) ?? [];
  const micros = BigInt(Date.parse(`${until}${zone}`)) * 1000n + BigInt(fraction.padEnd(6, '0').slice(0, 6));
  if (micros < 0n) return '0';
  return String(micros > latest ? latest : micros);
}
