import * as z from 'zod';

/** The values of operations, as JSON has them. */

export function wholeNumber(description: string, most = 2 ** 32 - 1) {
  const error = `must be a whole number from 1 to ${most}`;
  return z.int(error).min(1, error).max(most, error).meta({ title: 'n', description });
}

export function text(most: number, description: string) {
  const error = `must have 1 to ${most} characters, none of them half`;
  return (
    z
      .string({ error: ({ input }) => (input === undefined ? undefined : error) })
      // Half of a surrogate pair cannot be stored.
      .refine((given) => given !== '' && [...given].length <= most && !/\p{Cs}/u.test(given), error)
      .meta({ minLength: 1, maxLength: most, description })
  );
}

export const account = (description = 'advertiser or publisher') => text(128, description);

/** What a list may be of. */
export const ofAccount = z.strictObject({ account: account('only those of this account').optional() });

export const load = (description = 'its id in the list of loads') => text(100, description);

/** A day that events can have. */
export function eventDay(description: string) {
  const error = 'must be a day that exists, as yyyy-mm-dd, from 1971-01-01 to 2149-06-04';
  return z.iso
    .date({ error })
    .refine((day) => day >= '1971-01-01' && day <= '2149-06-04', error)
    .meta({ title: 'day', description });
}

export function instant(description: string) {
  return z
    .union([z.iso.date(), z.iso.datetime({ offset: true })], {
      error: 'must be a day that exists, as yyyy-mm-dd, or a time such as 2027-01-31T12:00:00Z',
    })
    .transform((given) => new Date(given))
    .meta({ title: 'time', description });
}

/** A field of an input; what every object of JavaScript has (`constructor`) is none. */
export function fieldOf({ shape }: z.ZodObject, name: string): z.core.$ZodType | undefined {
  return Object.hasOwn(shape, name) ? shape[name] : undefined;
}

/** Words of a command line, or parameters of an address, as JSON would have them. */
export function fromWords(
  { input }: { readonly input: z.ZodObject },
  words: Readonly<Record<string, unknown>>,
): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(words).map(([name, word]) => {
      const field = fieldOf(input, name);
      const isOther = typeof word === 'string' && field && !z.safeParse(field, word).success;
      return [name, isOther && /^([1-9]\d{0,14}|true|false|null)$/.test(word) ? JSON.parse(word) : word];
    }),
  );
}
