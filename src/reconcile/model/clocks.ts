import { setImmediate } from 'node:timers/promises';
import { zoneNames } from '../../report/time/zone-abbreviations.ts';

/** A way to cut time into days: seconds to add to UTC, from instants on. */
export interface Clock {
  /** `UTC+02:00`, or zones that changed their clocks meanwhile. */
  readonly name: string;
  /** Unix times at which another offset begins; one fewer than there are offsets. */
  readonly switches: readonly number[];
  /** Seconds. */
  readonly offsets: readonly number[];
}

const quarter = 900;
const dayMs = 86_400_000;
/** No zone has changed its clocks twice in so many days since 2000. */
const stepMs = 5 * dayMs;
/** Of a longer range only fixed offsets are tried: to find when all zones change takes half a millisecond a day. */
const mostDays = 800;

/** `UTC-09:30` */
function offsetName(seconds: number): string {
  const minutes = Math.abs(seconds) / 60;
  const two = (value: number) => String(value).padStart(2, '0');
  return `UTC${seconds < 0 ? '-' : '+'}${two(Math.floor(minutes / 60))}:${two(minutes % 60)}`;
}

/**
 * Every clock that days of a range can be cut by: all quarters of an hour from UTC-12:00 to UTC+14:00, those nearest to `own`
 * first, and all zones that change their clocks in these days. Between two zones other work has its turn.
 * @param first a day, `yyyy-mm-dd`
 */
export async function clocksOf(first: string, last: string, own: string): Promise<Clock[]> {
  const start = Date.parse(first) - dayMs;
  const end = Date.parse(last) + 2 * dayMs;
  const ownOffset = offsetsIn(own)(start);
  const fixed: Clock[] = [];
  for (let offset = -12 * 3600; offset <= 14 * 3600; offset += quarter)
    fixed.push({ name: offsetName(offset), switches: [], offsets: [offset] });
  const distance = ({ offsets: [offset = 0] }: Clock) => Math.abs(offset - ownOffset);
  fixed.sort((a, b) => distance(a) - distance(b));
  const changing = new Map<string, Clock>();
  const zones = end - start > mostDays * dayMs ? [] : Intl.supportedValuesOf('timeZone');
  for (const zone of zones) {
    await setImmediate();
    const clock = clockOf(zone, start, end);
    if (clock.switches.length === 0) continue;
    const key = JSON.stringify([clock.switches, clock.offsets]);
    // One name for each: the shortest is the best known.
    const known = changing.get(key);
    if (!known || zone === own || (known.name !== own && zone.length < known.name.length))
      changing.set(key, clock);
  }
  return [...fixed, ...changing.values()];
}

function clockOf(zone: string, start: number, end: number): Clock {
  const offsetAt = offsetsIn(zone);
  const switches: number[] = [];
  let before = offsetAt(start);
  const offsets = [before];
  for (let at = start; at < end; at += stepMs) {
    let [from, to] = [at, Math.min(at + stepMs, end)];
    const after = offsetAt(to);
    if (after === before) continue;
    while (to - from > 60_000) {
      const middle = from + Math.floor((to - from) / 120_000) * 60_000;
      if (offsetAt(middle) === before) from = middle;
      else to = middle;
    }
    switches.push(to / 1000);
    offsets.push(after);
    before = after;
  }
  return { name: zone, switches, offsets };
}

/** Seconds; zones of old with odd seconds are those of the minute. */
function offsetsIn(zone: string): (at: number) => number {
  const nameAt = zoneNames(zone, 'en-US', 'longOffset');
  return (at) => {
    const [, sign, hours = 0, minutes = 0] = /^GMT([+-])(\d\d):(\d\d)/.exec(nameAt(at)) ?? [];
    return (sign === '-' ? -1 : 1) * (Number(hours) * 3600 + Number(minutes) * 60);
  };
}
