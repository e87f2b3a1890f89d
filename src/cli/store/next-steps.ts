import { adviceOn } from '../../../clickhouse/consistency/damaged-parts.ts';
import type { JudgedDay } from '../../../ingest/history/low-day.ts';
import { pushedFrom } from '../../../ingest/input/held-input.ts';
import { replayedIn } from '../../../ingest/ledger/load-records.ts';
import type { AlertLimits } from '../../config/config.ts';
import { counted, formatNumber, line } from '../command/command.ts';
import type { DataStatus } from './data-status.ts';

/** ClickHouse refuses inserts into a partition with 3,000 parts and slows them down from 1,000. */
const manyParts = 800;
const littleSpace = 0.15;
const accountsNamed = 5;
/** Of a reason; adtally loads has all of it. */
const reasonLength = 160;
const takesBack =
  'takes back what that load has stored, also where another file of the same content relies on it';

/** What a person should do, most urgent first. */
export function nextSteps(data: DataStatus | undefined, alerts: AlertLimits, now: Date): string[] {
  if (!data) return ['adtally migrate: the store lacks migrations'];
  const { open, disk, size, events, folded_rows, interruptedUnloads, interruptedRewrites, damaged } = data;
  const unloading = interruptedUnloads.reduce((chunks, each) => chunks + each.chunks, 0);
  return [
    ...damaged.map(adviceOn),
    disk.free < disk.total * littleSpace &&
      'make room on the disk: adtally prune --keep MONTHS, or a larger one',
    ...interruptedUnloads.map(({ load }) => endUnload(load)),
    open.chunksInDoubt > unloading &&
      `load the files of failed loads again once their cause is mended: adtally loads lists them; adtally unload LOAD ${takesBack}`,
    interruptedRewrites.length > 0 &&
      `complete what was interrupted in ${interruptedRewrites.join(', ')}: run the same command again, or adtally rebuild; until then no report as of a moment can tell these months`,
    ...ofLoads(data, alerts, now),
    ofLowDay(data.low_day),
    size.most_parts > manyParts && 'load larger files, or fewer at a time: a month has too many parts',
    open.rejectedRows > 0 && 'correct rejected rows: adtally rejects lists them',
    ofUnconfirmed(data, alerts, now),
    events + folded_rows === 0 && 'load events: adtally ingest events FILE',
  ].flatMap((step) => (step ? line([step]) : []));
}

function ofLoads({ failing, longest, last_events }: DataStatus, alerts: AlertLimits, now: Date) {
  const silentHours = (now.getTime() - Date.parse(last_events)) / 3_600_000;
  const others = failing.files - 1;
  return [
    failing.files > 0 &&
      `${loadAgain(failing.file)}, once its cause is mended: it failed ${failing.times > 1 ? `${formatNumber(failing.times)} times` : 'once'}${failing.error && ` (${shortened(failing.error)})`}; or give it up: adtally unload ${failing.load}${failing.file.includes(' --replaces') ? ', if it has not begun to replace,' : ''} ${takesBack}${others > 0 ? `; ${counted(others, 'more file')} failed, too: adtally loads` : ''}`,
    longest.seconds > alerts.loadHours * 3600 &&
      `look after load ${longest.load} of ${longest.file}, under way for ${counted(Math.floor(longest.seconds / 3600), 'hour')}: if it hangs, stop it and run the same command again`,
    silentHours > alerts.noEventsHours &&
      `see why no events have come for ${counted(Math.floor(silentHours), 'hour')}: files that are empty or were loaded before bring no events`,
  ];
}

function shortened(reason: string): string {
  const line = reason.split('\n', 1).join();
  return line.length > reasonLength ? `${line.slice(0, reasonLength).trimEnd()}…` : line;
}

/** What came over HTTP has no file. */
export function loadAgain(file: string): string {
  if (file.startsWith(pushedFrom)) return `have the sender send the body again (${file})`;
  const replayed = replayedIn(file);
  // What was begun ends first, with its own corrections.
  return replayed ? `run adtally replay ${replayed} FILE, with its corrected rows` : `load ${file} again`;
}

function ofUnconfirmed(
  { open, unconfirmed }: DataStatus,
  { unconfirmedDays }: AlertLimits,
  now: Date,
): string | false {
  const age = (now.getTime() - Date.parse(unconfirmed.oldest_day)) / 86_400_000;
  return (
    age > unconfirmedDays &&
    `confirm old days: of ${counted(open.unconfirmedDays, 'unconfirmed day')} the oldest is ${unconfirmed.oldest_day}, of account ${unconfirmed.oldest_account}: adtally confirm ACCOUNT --from DAY --to DAY`
  );
}

/** Of the one day that is judged. */
function ofLowDay(judged: readonly JudgedDay[]): string | undefined {
  const [first] = judged;
  if (!first) return undefined;
  const counts = judged
    .filter(({ low }) => low)
    .map((each) => `${few(each)} ${describeMeasure(each)} of ${each.family.replaceAll('_', ' ')}`);
  const accounts = judged.flatMap((each) =>
    each.lowest.map((lowest) => `${lowest.account} (${few(lowest)} ${describeMeasure(each)})`),
  );
  const named = accounts.slice(0, accountsNamed);
  const more = accounts.length > named.length || judged.some((each) => each.accounts > each.lowest.length);
  return [
    `see whether files of ${first.day} are missing: ${counts.length > 0 ? counts.join(', ') : 'too few events of accounts'}`,
    ...(named.length > 0 ? [`accounts: ${named.join(', ')}${more ? ' and more' : ''}`] : []),
  ].join('; ');
}

const few = ({ events, usual }: { readonly events: number; readonly usual: number }): string =>
  `${formatNumber(events)} instead of ${formatNumber(usual)}`;

const describeMeasure = ({ measure }: JudgedDay): string => measure.replaceAll('_', ' ');
/** What a person should do about an interrupted unload. */
export function endUnload(load: string): string {
  return `take load ${load} back: its unload was interrupted, and adtally unload ${load} completes it`;
}

/** @param left what a killed command has left, in words */
export function leftOverStep(left: readonly string[]): string {
  return `a backup or restore was interrupted and left ${left.join(', ')}: run it again, which removes this first`;
}
