import { describeVersion, type Version } from '../../config/version.ts';
import { counted, formatNumber } from '../command/command.ts';
import type { DataStatus } from './data-status.ts';

/** The state of a store and of what runs here. Numbers are counts and bytes. */
export interface Status {
  readonly adtally: Version;
  readonly node: string;
  readonly clickhouse: string;
  /** The address of the server, or the folder of the embedded one. */
  readonly where: string;
  readonly database: string;
  /** Migrations that are missing; `newer`: the store has more than this version knows. */
  readonly migrations: readonly string[] | 'newer' | 'unfinished restore';
  /** Shards that cannot be reached: the data are those of the others. Absent where all can. */
  readonly missing?: readonly string[];
  /** Absent where migrations are missing. */
  readonly data?: DataStatus;
  /** What a person should do, most urgent first. */
  readonly next: readonly string[];
}

/** A status on one screen. */
export function describeStatus(status: Status): string {
  const { adtally, node, clickhouse, where, database, migrations, missing, data, next } = status;
  const schema =
    migrations === 'newer'
      ? 'newer than this adtally'
      : migrations === 'unfinished restore'
        ? migrations
        : migrations.length > 0
          ? `lacks migrations: ${migrations.join(', ')}`
          : 'up to date';
  const lines: Lines = [
    ['adtally', `${describeVersion(adtally)}, Node.js ${node}, ClickHouse ${clickhouse}`],
    ['store', `${where}, database ${database}, ${data ? `days in ${data.timezone}, ` : ''}${schema}`],
    missing && ['missing', missing.join(', ')],
    ...(data ? ofData(data) : []),
    ...(next.length > 0 ? next : ['nothing to do']).map((step, n) => [n ? '' : 'next', step] as const),
  ];
  return lines.flatMap((told) => (told ? `${told[0].padEnd(10)}${told[1]}` : [])).join('\n');
}

/** Names and texts; what there is nothing to tell of is no line. */
type Lines = readonly (readonly [name: string, text: string] | false | undefined)[];

function ofData(data: DataStatus): Lines {
  const { first_day, folded_rows, size, closed, past, disk, loads, last_events, followed, open } = data;
  const range = first_day && ` from ${first_day} to ${data.last_day}`;
  const folded = folded_rows ? ` and ${counted(folded_rows, 'row')} of pruned months` : '';
  const since = data.unconfirmed.oldest_day && `, since ${data.unconfirmed.oldest_day}`;
  return [
    [
      'data',
      `${counted(data.events, 'event')}${folded}${range}, ${formatBytes(size.bytes)} in ${counted(size.parts, 'part')}`,
    ],
    closed.months > 0 && [
      'closed',
      `${counted(closed.months, 'month')} of accounts, ${formatBytes(closed.bytes)}`,
    ],
    past.events > 0 && [
      'past',
      `${counted(past.events, 'event')} taken back or replaced, ${formatBytes(past.bytes)}`,
    ],
    ['disk', `${formatBytes(disk.free)} of ${formatBytes(disk.total)} free`],
    [
      'loads',
      `${data.today}: ${counted(loads.loads, 'load')}, ${counted(loads.rows, 'event')}, ${formatNumber(loads.rejected_rows)} rejected, ${formatNumber(loads.failed)} failed; ${formatNumber(loads.running)} running now`,
    ],
    ['', loads.last_ended ? `the last one ended ${loads.last_ended} UTC` : 'none has ended yet'],
    last_events !== '' && ['', `events came last ${last_events.slice(0, 19).replace('T', ' ')} UTC`],
    followed.files > 0 && [
      'followed',
      `${counted(followed.files, 'file')} in 24 hours, the last one ${followed.last_at} UTC, ${counted(followed.waited_seconds, 'second')} after it was written`,
    ],
    [
      'open',
      `${counted(open.rejectedRows, 'rejected row')}, ${counted(open.chunksInDoubt, 'chunk')} in doubt, ${counted(open.unconfirmedDays, 'day')} of accounts with unconfirmed money${since}`,
    ],
  ];
}

/** `84.1 MB`; decimal units, as disks are sold. */
export function formatBytes(bytes: number): string {
  const units = ['B', 'kB', 'MB', 'GB', 'TB', 'PB'];
  const power = Math.min(units.length - 1, Math.max(0, Math.floor(Math.log10(Math.max(1, bytes)) / 3)));
  return `${(bytes / 1000 ** power).toFixed(power ? 1 : 0)} ${units[power]}`;
}
