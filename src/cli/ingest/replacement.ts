import type { DayRange } from '../../../clickhouse/consistency/verify-rollups.ts';
import type { Input } from '../../../ingest/input/input.ts';
import { type FileLoadOptions, loadFiles } from '../../../ingest/load/load-files.ts';
import { type Replaced, type ReplaceOptions, replaceEvents } from '../../../ingest/replace/replace-events.ts';
import type { Target } from '../../../ingest/replace/target.ts';
import type { Change } from '../../../ingest/replace/totals.ts';
import { usage } from '../command/arguments.ts';
import { say } from '../command/command.ts';

/** What says what is replaced, and what does not go with it. */
export interface ReplaceFlags {
  /** A load. */
  readonly replaces?: string;
  readonly replacesDays?: DayRange;
  /** The account of `replacesDays`. */
  readonly of?: string;
  /** Percent. */
  readonly maxChange?: number;
  readonly dryRun?: boolean;
  readonly dedupe?: boolean;
  /** Milliseconds between two looks for new files; absent: one look. */
  readonly follow?: number;
  /** The folder for files that are loaded. */
  readonly moveTo?: string;
}

/** What files take the place of; undefined where they are loaded beside all else. @throws wrong usage */
export function targetOf(flags: ReplaceFlags): Target | undefined {
  const { replaces, replacesDays: days, of: account, maxChange, dedupe, follow, moveTo } = flags;
  if ((days === undefined) !== (account === undefined))
    throw usage('--replaces-days and --of go together: the days and the account');
  if (replaces !== undefined && days !== undefined)
    throw usage('give --replaces or --replaces-days, not both');
  const target =
    replaces !== undefined
      ? { load: replaces }
      : days && account !== undefined
        ? { days, account }
        : undefined;
  if (target === undefined && maxChange !== undefined)
    throw usage('--max-change goes with --replaces or --replaces-days');
  const other = Object.entries({ dedupe, follow, 'move-to': moveTo }).find(
    ([, value]) => value !== undefined,
  );
  if (target && other) throw usage(`--${other[0]} does not go with --replaces or --replaces-days`);
  return target;
}

/** Loads files in the place of others, and says how far the sums move. */
export function replace(
  files: readonly Input[],
  options: FileLoadOptions,
  replaces: Pick<ReplaceOptions, 'target' | 'files'> & Pick<ReplaceFlags, 'dryRun' | 'maxChange'>,
): Promise<Replaced> {
  const { target, dryRun = false, maxChange } = replaces;
  const { onSample, ...others } = options;
  return replaceEvents({
    ...others,
    target,
    files: replaces.files,
    dryRun,
    maxChangePercent: maxChange,
    stage: (hold) =>
      loadFiles(files, {
        ...others,
        dryRun: true,
        ...(dryRun && onSample && { onSample }),
        hold,
      }),
    onTotals: (changes) => say(describeChanges(changes)),
  });
}

/** `events 10 → 12 (+20 %), impressions …`: what is not there before and after is left out. */
function describeChanges(changes: readonly Change[]): string {
  const moved = changes.filter(({ before, after }) => before !== '0' || after !== '0');
  if (moved.length === 0) return 'there is nothing to replace, and nothing comes';
  return moved
    .map(
      ({ what, before, after, percent }) =>
        `${what.replaceAll('_', ' ')} ${before} → ${after}${inPercent(percent)}`,
    )
    .join(', ');
}

function inPercent(percent: number): string {
  if (!Number.isFinite(percent)) return '';
  if (percent === 0) return ' (the same)';
  return ` (${percent > 0 ? '+' : ''}${percent.toFixed(1)} %)`;
}
