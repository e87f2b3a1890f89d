import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test, vi } from 'vitest';
import { timestampIn } from '../../src/report/time/timestamp.ts';

const winter = new Date('2026-01-15T11:30:00Z');
const summer = new Date('2026-07-15T11:30:00Z');
const zones = Intl.supportedValuesOf('timeZone');

test.each([
  ['Asia/Tokyo', '2026-01-15 20:30:00 JST', '2026-07-15 20:30:00 JST'],
  ['Asia/Shanghai', '2026-01-15 19:30:00 CST', '2026-07-15 19:30:00 CST'],
  ['Europe/Moscow', '2026-01-15 14:30:00 MSK', '2026-07-15 14:30:00 MSK'],
  ['Europe/Dublin', '2026-01-15 11:30:00 GMT', '2026-07-15 12:30:00 IST'],
  ['Europe/Vienna', '2026-01-15 12:30:00 CET', '2026-07-15 13:30:00 CEST'],
  ['Asia/Calcutta', '2026-01-15 17:00:00 IST', '2026-07-15 17:00:00 IST'],
  ['Asia/Jerusalem', '2026-01-15 13:30:00 IST', '2026-07-15 14:30:00 IDT'],
  ['America/New_York', '2026-01-15 06:30:00 EST', '2026-07-15 07:30:00 EDT'],
  ['Pacific/Guam', '2026-01-15 21:30:00 ChST', '2026-07-15 21:30:00 ChST'],
  ['UTC', '2026-01-15 11:30:00 UTC', '2026-07-15 11:30:00 UTC'],
  // Zones that ICU calls as another one, and some of these that tzdata calls otherwise.
  ['America/Toronto', '2026-01-15 06:30:00 EST', '2026-07-15 07:30:00 EDT'],
  ['America/Phoenix', '2026-01-15 04:30:00 MST', '2026-07-15 04:30:00 MST'],
  ['Australia/Melbourne', '2026-01-15 22:30:00 AEDT', '2026-07-15 21:30:00 AEST'],
  ['Africa/Abidjan', '2026-01-15 11:30:00 GMT', '2026-07-15 11:30:00 GMT'],
  ['Etc/Greenwich', '2026-01-15 11:30:00 GMT', '2026-07-15 11:30:00 GMT'],
  ['Europe/Jersey', '2026-01-15 11:30:00 GMT', '2026-07-15 12:30:00 BST'],
  ['Europe/Volgograd', '2026-01-15 14:30:00 MSK', '2026-07-15 14:30:00 MSK'],
  ['Europe/Minsk', '2026-01-15 14:30:00 +03', '2026-07-15 14:30:00 +03'],
  // tzdata has no letters for these, and for the first ICU has.
  ['Asia/Dubai', '2026-01-15 15:30:00 GST', '2026-07-15 15:30:00 GST'],
  ['Europe/Istanbul', '2026-01-15 14:30:00 +03', '2026-07-15 14:30:00 +03'],
  ['Asia/Kathmandu', '2026-01-15 17:15:00 +0545', '2026-07-15 17:15:00 +0545'],
  ['America/Sao_Paulo', '2026-01-15 08:30:00 -03', '2026-07-15 08:30:00 -03'],
])('a time in %s ends with the abbreviation of its zone', (zone, inWinter, inSummer) => {
  const timestamp = timestampIn(zone);
  expect([timestamp(winter), timestamp(summer)]).toEqual([inWinter, inSummer]);
});

test('a time in any zone has the shape of the contract, and no offset that looks like a zone', () => {
  expect(zones.length).toBeGreaterThan(400);
  const wrong = zones.flatMap((zone) =>
    [winter, summer]
      .map(timestampIn(zone))
      .filter((text) => !/^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d ([A-Za-z]{3,5}|[+-]\d\d(\d\d)?)$/.test(text))
      .map((text) => `${zone}: ${text}`),
  );
  expect(wrong).toEqual([]);
});

test('the letters are those that ICU has, where it has any', () => {
  const locales = ['en-US', 'en-GB', 'en-AU', 'en-IN', 'en-ZA', 'en-NZ'];
  const differing = zones.flatMap((timeZone) =>
    [winter, summer].flatMap((time) => {
      const ours = timestampIn(timeZone)(time).split(' ').at(-1) ?? '';
      const known = locales
        .map((locale) => new Intl.DateTimeFormat(locale, { timeZone, timeZoneName: 'short' }))
        .map((format) => format.formatToParts(time).find(({ type }) => type === 'timeZoneName')?.value ?? '')
        .filter((name) => /^[A-Z]+$/.test(name));
      return known.length === 0 || known.includes(ours) ? [] : [`${timeZone}: ${ours}, ICU ${known[0]}`];
    }),
  );
  // ICU has the old names of Hawaii's other zone.
  expect([...new Set(differing)]).toEqual(['America/Adak: HST, ICU HAST', 'America/Adak: HDT, ICU HADT']);
});

/** What tzdata says of a zone from now on, as `CET-1CEST,M3.5.0,M10.5.0/3`; undefined where it has no file. */
function rulesOf(zone: string): string | undefined {
  const file = join('/usr/share/zoneinfo', zone);
  return existsSync(file) ? readFileSync(file, 'latin1').trimEnd().split('\n').at(-1) : undefined;
}

test.skipIf(!existsSync('/usr/share/zoneinfo'))('the letters are those of tzdata, where it has any', () => {
  const differing = zones.flatMap((zone) => {
    const [, standard = '', hours = '', other = ''] =
      /^([A-Za-z]+)(-?\d+)(?::\d+)?([A-Za-z]+)?/.exec(rulesOf(zone) ?? '') ?? [];
    const timestamp = timestampIn(zone);
    return [winter, summer].flatMap((time) => {
      const [day, clock, ours] = timestamp(time).split(' ');
      const offsetHours = Math.trunc((Date.parse(`${day}T${clock}Z`) - time.getTime()) / 3_600_000);
      // ICU may know of other changes of a zone than tzdata.
      const letters = offsetHours === -Number(hours) ? standard : other;
      return letters === '' || ours === letters ? [] : [`${zone}: ${ours}, tzdata ${letters}`];
    });
  });
  expect(differing).toEqual([]);
});

/** As it is in a Node.js that was built without other languages. */
class EnglishFormat extends Intl.DateTimeFormat {
  constructor(locale: string, options: Intl.DateTimeFormatOptions) {
    super(locale.startsWith('en') ? locale : 'en-US', options);
  }
}

test('times and days are the same where Node.js has no language but English', async () => {
  vi.stubGlobal('Intl', Object.create(Intl, { DateTimeFormat: { value: EnglishFormat } }));
  try {
    // What was made before for a zone is kept.
    vi.resetModules();
    const { timestampIn } = await import('../../src/report/time/timestamp.ts');
    expect(timestampIn('Europe/Vienna')(winter)).toBe('2026-01-15 12:30:00 CET');
    const { dueUntil } = await import('../../src/schedules/due.ts');
    const due = { day: '2026-01-15', at: winter };
    expect(dueUntil({ every: 'day', at: '12:30' }, winter, 'Europe/Vienna').at(-1)).toEqual(due);
  } finally {
    vi.unstubAllGlobals();
  }
});
