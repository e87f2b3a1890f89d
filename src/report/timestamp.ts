/** Locales whose English names the abbreviation of a zone, where en-US gives only an offset (`GMT+2`). */
const locales = ['en-US', 'en-GB', 'en-AU', 'en-IN', 'en-ZA', 'en-NZ'];

/**
 * Returns a function that writes a time as the envelope does, `yyyy-mm-dd hh:mm:ss TZ` in `timezone`.
 * A zone without an abbreviation shows its offset, as `GMT+8`.
 */
export function timestampIn(timezone: string): (time: Date) => string {
  const date = new Intl.DateTimeFormat('sv-SE', {
    timeZone: timezone,
    dateStyle: 'short',
    timeStyle: 'medium',
  });
  const zones = locales.map(
    (locale) => new Intl.DateTimeFormat(locale, { timeZone: timezone, timeZoneName: 'short' }),
  );
  return (time) => {
    const names = zones.map(
      (zone) => zone.formatToParts(time).find(({ type }) => type === 'timeZoneName')?.value ?? timezone,
    );
    return `${date.format(time)} ${names.find((name) => /^[A-Z]+$/.test(name)) ?? names[0]}`;
  };
}
