/**
 * What zones are called in January and in July, by tzdata 2025b, as its compiled zones end with it (RFC 9636 §3.3). ICU knows
 * that of a few regions only, by the locale. A zone stands for all that ICU calls by the same name in English.
 */
const called = `
  Pacific/Pago_Pago SST
  America/Adak HST HDT
  America/Anchorage AKST AKDT
  America/Los_Angeles PST PDT
  America/Whitehorse MST
  America/Mazatlan MST
  America/Denver MST MDT
  America/Chicago CST CDT
  America/Havana CST CDT
  America/New_York EST EDT
  America/Halifax AST ADT
  America/St_Johns NST NDT
  UTC UTC
  Europe/London GMT BST
  Europe/Dublin GMT IST
  Europe/Lisbon WET WEST
  Europe/Paris CET CEST
  Africa/Lagos WAT
  Africa/Maputo CAT
  Europe/Athens EET EEST
  Africa/Johannesburg SAST
  Asia/Jerusalem IST IDT
  Africa/Nairobi EAT
  Europe/Moscow MSK
  Asia/Karachi PKT
  Asia/Calcutta IST
  Asia/Jakarta WIB
  Australia/Perth AWST
  Asia/Shanghai CST
  Asia/Taipei CST
  Asia/Hong_Kong HKT
  Asia/Manila PST
  Asia/Makassar WITA
  Asia/Tokyo JST
  Asia/Seoul KST
  Asia/Jayapura WIT
  Australia/Adelaide ACDT ACST
  Australia/Sydney AEDT AEST
  Pacific/Guam ChST
  Pacific/Auckland NZDT NZST`;

/** Zones that tzdata calls otherwise than others of that name, or that an older ICU has no name for; some without letters. */
const calledOtherwise = `
  Etc/GMT,Etc/GMT+0,Etc/GMT-0,Etc/GMT0,Etc/Greenwich,GMT,GMT+0,GMT-0,GMT0,Greenwich GMT
  Europe/Guernsey,Europe/Isle_of_Man,Europe/Jersey GMT BST
  Asia/Famagusta EET EEST
  Europe/Kirov,Europe/Volgograd MSK
  MET MET MEST
  Antarctica/Casey,Antarctica/Troll,Asia/Colombo,Europe/Minsk`;

const january = new Date('2026-01-15');
const july = new Date('2026-07-15');

/** The letters for a time in a zone; undefined where tzdata has none. */
export function lettersIn(timezone: string): (time: Date) => string | undefined {
  const rows = [...rowsOf(calledOtherwise), ...rowsOf(called)];
  const own = rows.find(([zones = '']) => zones.split(',').includes(timezone));
  if (!own) standing ??= lettersByName(rowsOf(called));
  const letters = own ? lettersByName([[timezone, ...own.slice(1)]]) : standing;
  const nameAt = zoneNames(timezone, 'en-US', 'long');
  return (time) => letters?.get(nameAt(time));
}

/** Made when it is first needed: that takes 15 ms. */
let standing: ReadonlyMap<string, string> | undefined;

const rowsOf = (table: string) => table.split('\n').map((line) => line.trim().split(' '));

function lettersByName(rows: readonly (readonly string[])[]): ReadonlyMap<string, string> {
  const named = rows.flatMap(([zone, winter, summer = winter]) => {
    if (!zone || !winter || !summer) return [];
    const nameAt = zoneNames(zone, 'en-US', 'long');
    return [[nameAt(january), winter] as const, [nameAt(july), summer] as const];
  });
  return new Map(named);
}

/** What ICU calls a zone. */
export function zoneNames(
  timeZone: string,
  locale: string,
  timeZoneName: 'long' | 'longOffset' | 'short',
): (time: Date | number) => string {
  const format = new Intl.DateTimeFormat(locale, { timeZone, timeZoneName });
  return (time) => format.formatToParts(time).find(({ type }) => type === 'timeZoneName')?.value ?? '';
}
