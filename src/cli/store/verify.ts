import { setTimeout as delay } from 'node:timers/promises';
import { closedTable } from '../../../catalog/breakdowns.ts';
import { catalog } from '../../../catalog/catalog.ts';
import { type Store, select } from '../../../clickhouse/client.ts';
import {
  type DamagedPart,
  damagedParts,
  describeDamagedPart,
  dropDamagedParts,
} from '../../../clickhouse/consistency/damaged-parts.ts';
import { beginRewrite, endRewrite } from '../../../clickhouse/consistency/rewrites.ts';
import {
  type DayRange,
  type Difference,
  everyDay,
  type Verification,
  verifyRollups,
} from '../../../clickhouse/consistency/verify-rollups.ts';
import { rollups } from '../../../clickhouse/rollups.ts';
import { deadAfterMs } from '../../../clickhouse/timings.ts';
import { interruptedUnloads } from '../../../ingest/history/interrupted.ts';
import {
  type LedgerDifference,
  type UnnamedChunks,
  unnamedChunks,
  verifyLedger,
} from '../../../ingest/history/verify-ledger.ts';
import { pushedFrom } from '../../../ingest/input/held-input.ts';
import { publicKeyOf } from '../../close/signature.ts';
import { verifyCloses } from '../../close/verify-closes.ts';
import { withReader } from '../../close/with-reader.ts';
import { config, counted, line, print, quotedForShell, say, untilReportsShowIt } from '../command/command.ts';
import { exclusively } from './exclusively.ts';
import { endUnload, loadAgain } from './next-steps.ts';

export interface VerifyFlags {
  readonly json?: boolean;
  /** Also gives up parts where nothing shows for certain whether rows are missing. */
  readonly dropDamaged?: boolean;
}

/**
 * One line for each difference and damaged part; exit code 1 if there are any, or an unload was interrupted. A damaged
 * part is given up when everything agrees without it, so that reports answer again.
 */
export async function runVerify(store: Store, days: DayRange, flags: VerifyFlags): Promise<void> {
  if ((await damagedParts(store)).length === 0) return verify(store, days, flags, []);
  // What a load is just storing is compared with nothing.
  return exclusively(store, 'verify', 'what damaged parts had', async ({ id }) =>
    verify(store, days, flags, await damagedParts(store), id),
  );
}

async function verify(
  store: Store,
  days: DayRange,
  { json, dropDamaged = false }: VerifyFlags,
  damaged: readonly DamagedPart[],
  own = '',
): Promise<void> {
  const began = performance.now();
  const ledger = await verifyLedger(store, days);
  const unnamed = await unnamedChunks(store, days);
  const { differences, more } = await lastingDifferences(store, days);
  const keys = config().signing?.publicKeys.map(publicKeyOf);
  const closes = await withReader(store, (reader) => verifyCloses(store, reader, catalog, days, keys));
  const unloads = (await interruptedUnloads(store)).map(({ load }) => load);
  const agrees = differences.length + ledger.differences.length + unloads.length === 0;
  const by = agrees ? undefined : await changedBy(store, own, performance.now() - began);
  const retry = by && `${by} ran meanwhile: run adtally verify again when it has ended`;
  const tellerOf = await tellers(store, damaged);
  const isNeedless = (part: DamagedPart) =>
    days === everyDay &&
    {
      ledger: agrees,
      rollups: agrees && dropDamaged,
      closes: closes.length === 0 || dropDamaged,
      nothing: dropDamaged,
    }[tellerOf(part)];
  const left = damaged.filter((part) => !isNeedless(part));
  if (json) {
    const parts = left.map((part) => ({ ...part, what: 'damaged' }));
    const begun = unloads.map((load) => ({ load, what: 'unload interrupted' }));
    print(JSON.stringify([...ledger.differences, ...begun, ...differences, ...closes, ...parts]));
  } else {
    for (const each of ledger.differences) print(describeDifference(each));
    for (const { table, account, day, measure, events, rollup } of differences) {
      print(line([table, account, day, `${measure}: ${events} in events, ${rollup} in the rollup`]));
    }
    for (const { account, month, revision, what } of closes) {
      print(line([account, month, `closed as ${revision}`, what]));
    }
    for (const { table, partition, part } of left) print(`${table}\t${partition}\t${part}\tdamaged`);
  }
  if (ledger.differences.length === 0 && unloads.length === 0) say('every chunk agrees with the ledger');
  else
    say(
      `${countedDifferences(ledger.differences, ledger.more)} from the ledger; ${retry ?? mendingOf(ledger.differences, unloads)}`,
    );
  if (unnamed.chunks > 0) say(describeUnnamed(unnamed));
  if (differences.length === 0) say('every rollup agrees with the raw events');
  else {
    // They rebuild the rollups, too.
    const isOpen = unloads.length > 0 || ledger.differences.some(({ inDoubt }) => inDoubt);
    const repair = damaged.some(({ table }) => table === 'events')
      ? 'rollups may have what damaged events lack: mend the events first'
      : mendingOfRollups(differences);
    say(
      `${countedDifferences(differences, more)} of rollups from the raw events; ${retry ?? (isOpen ? 'mend the ledger first' : repair)}`,
    );
  }
  const closesWith = (fault: (typeof closes)[number]['fault']) => {
    const wrong = closes.filter((each) => each.fault === fault);
    return new Set(wrong.map(({ account, month }) => `${month} ${account}`)).size;
  };
  const changed = closesWith('rows');
  if (changed > 0)
    say(`rows of ${counted(changed, 'closed month')} have changed; restore them from a backup`);
  const unproven = closesWith('manifest');
  if (unproven > 0) {
    say(
      `the manifest of ${counted(unproven, 'closed month')} cannot be checked; give the public key that signed it behind that of SIGNING_KEY, and where that does not help restore it from a backup`,
    );
  }
  await giveUp(store, damaged.filter(isNeedless));
  for (const part of left) say(`${describeDamagedPart(part)}; ${mendingPart(tellerOf(part) === 'ledger')}`);
  if (!agrees || closes.length + left.length > 0) process.exitCode = 1;
}

/**
 * Another command that may have taken loads back, replaced them or rebuilt rollups within that time. One that was killed shortly
 * before counts as well: what it has in doubt is left out as that of a load at work.
 */
async function changedBy(store: Store, own: string, ms: number): Promise<string | undefined> {
  const [load] = await select<{ id: string; file: string }>(
    store,
    `SELECT load_id AS id, file FROM loads AS l FINAL
     WHERE kind IN ('rebuild', 'replacement') AND load_id != {own:String}
       AND l.version > now64(6) - toIntervalMillisecond({ms:UInt64} + if(l.state = 'running', ${deadAfterMs}, 0))
     ORDER BY id LIMIT 1`,
    { own, ms: Math.ceil(ms) },
  );
  return load && `${line([load.file])} (load ${load.id})`;
}

/** A load stores its events and then adds them to one rollup after the other. What differs only meanwhile is no fault. */
const looksAgain = 2;
const betweenLooksMs = 500;

async function lastingDifferences(store: Store, days: DayRange): Promise<Verification> {
  let found = await verifyRollups(store, catalog, days);
  for (let look = 0; look < looksAgain && found.differences.length > 0 && !found.more; look++) {
    await delay(betweenLooksMs);
    const placeOf = ({ table, account, day }: Difference) => `${table} ${day} ${account}`;
    const places = new Set(found.differences.map(placeOf));
    const inOrder = found.differences.map(({ day }) => day).sort();
    const again = await verifyRollups(store, catalog, {
      from: inOrder[0] ?? days.from,
      to: inOrder.at(-1) ?? days.to,
    });
    if (again.more) return again;
    found = { differences: again.differences.filter((each) => places.has(placeOf(each))), more: false };
  }
  return found;
}

/** What shows whether rows of a damaged part are missing, by its table and month. A table that lacks rows itself shows less. */
async function tellers(
  store: Store,
  damaged: readonly DamagedPart[],
): Promise<(part: DamagedPart) => 'ledger' | 'rollups' | 'closes' | 'nothing'> {
  const lacks = (table: string) => damaged.some((part) => part.table === table);
  const pruned = await select<{ month: string }>(
    store,
    'SELECT DISTINCT toString(month) AS month FROM pruned_months',
  );
  const closed = lacks('closes') ? [] : Object.keys(catalog.families).map(closedTable);
  const compared = ['events', 'chunk_days', ...rollups(catalog).map(({ table }) => table)];
  const isSure = !lacks('load_chunks') && !lacks('pruned_months');
  return ({ table, partition }) => {
    if (closed.includes(table)) return 'closes';
    if (!compared.includes(table)) return 'nothing';
    const isFolded = table === 'events' && pruned.some(({ month }) => month === partition);
    return isSure && !isFolded ? 'ledger' : 'rollups';
  };
}

/** Reports answer again; what they said before can no longer be told where it was made of these parts. */
async function giveUp(store: Store, parts: readonly DamagedPart[]): Promise<void> {
  if (parts.length === 0) return;
  const ofToday = rollups(catalog).map(({ table }) => table);
  const past = parts.filter(({ table }) => !ofToday.includes(table));
  const months = [...new Set(past.map(({ partition }) => Number(partition) || 0))];
  const beganAt = await beginRewrite(store, months);
  await endRewrite(store, months, { beganAt, isLost: 'true' });
  await dropDamagedParts(store, parts);
  await untilReportsShowIt();
  say(`${counted(parts.length, 'damaged part')} given up: no report is refused for that any more`);
}

function mendingPart(isTold: boolean): string {
  return isTold
    ? 'mend the differences, then run adtally verify without --from and --to'
    : 'restore a backup; or load or enter again what the part may have had, then run adtally verify --drop-damaged without --from and --to';
}

const countedDifferences = (differences: readonly unknown[], more: boolean): string =>
  `${more ? 'more than ' : ''}${counted(differences.length, 'difference')}`;

function describeDifference({ load, file, chunk, day, what, stored, ledger }: LedgerDifference): string {
  const counts = `${what}: ${stored} stored, ${ledger} in the ledger`;
  return line([file, load, `chunk ${chunk.slice(0, 12)}`, ...(day ? [day] : []), counts]);
}

function describeUnnamed({ chunks, events, first, last }: UnnamedChunks): string {
  const days = first === last ? first : `${first} to ${last}`;
  return `${counted(events, 'event')} of ${days} came in ${counted(chunks, 'chunk')} that the ledger does not know; their ${filesOfLost}`;
}

/** Nothing tells which files they are. One that had grown since it was first loaded would now be cut into other chunks. */
const filesOfLost =
  'files count as never loaded, and one that is loaded again may count twice: restore a backup, or, account by account, put files with its events of these days alone in the place of all that it has there (adtally ingest events FILES --replaces-days FIRST..LAST --of ACCOUNT)';

function completing({ file, load }: LedgerDifference): string {
  const more = file.startsWith(pushedFrom) ? `, or give it up with adtally unload ${load}` : '';
  return `complete interrupted loads: ${loadAgain(file)}${more}`;
}

function mendingOfRollups(differences: readonly Difference[]): string {
  const misplaced = differences.find(({ measure }) => measure === 'shard');
  return [
    ...(differences.some(({ measure }) => measure !== 'shard')
      ? ['repair with: adtally rebuild --from DAY --to DAY']
      : []),
    // A rebuild does not mend these: it makes them anew on the shard where their events lie.
    ...(misplaced
      ? [
          `accounts with rows on a shard that their reports do not read: run adtally place ACCOUNT SHARD for each, such as adtally place ${quotedForShell(misplaced.account)} ${misplaced.events}, after which they read all shards`,
        ]
      : []),
  ].join('; ');
}

/** The commands that mend differences, with their loads. @param unloads loads whose unload was interrupted */
function mendingOf(differences: readonly LedgerDifference[], unloads: readonly string[]): string {
  const first = (inDoubt: 0 | 1) =>
    differences.find((each) => each.load && each.inDoubt === inDoubt && !unloads.includes(each.load));
  const interrupted = first(1);
  const wrong = first(0);
  const isUnnamed = differences.some(({ load }) => load === '');
  return [
    ...unloads.map(endUnload),
    ...(interrupted ? [completing(interrupted)] : []),
    // A replacement that is completed mends what it replaces.
    ...(wrong && !interrupted
      ? [`repair the others with: adtally unload ${wrong.load}, then ${loadAgain(wrong.file)}`]
      : []),
    ...(isUnnamed ? [`where no load is named, ${filesOfLost}`] : []),
  ].join('; ');
}
