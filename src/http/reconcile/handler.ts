import type { Handler } from 'hono';
import { familyOf, rollupTable } from '../../../catalog/breakdowns.ts';
import type { Store } from '../../../clickhouse/client.ts';
import { lacksMemory } from '../../../clickhouse/retry.ts';
import { MappingError } from '../../../ingest/event/mapping.ts';
import { packingMark } from '../../../ingest/input/first-bytes.ts';
import { heldInput } from '../../../ingest/input/held-input.ts';
import type { Input } from '../../../ingest/input/input.ts';
import { InputError } from '../../../ingest/input/input-error.ts';
import { withoutHints } from '../../../ingest/input/option-hint.ts';
import { reportTimezone } from '../../../ingest/load/report-timezone.ts';
import { answerOf } from '../../reconcile/answer.ts';
import { maxFileBytes, mostRows } from '../../reconcile/limits.ts';
import { keyOf } from '../../reconcile/model/sides.ts';
import { NothingToCompare } from '../../reconcile/reconcile.ts';
import { compareReport, readTheirFile, suggestedMapping } from '../../reconcile/their-file.ts';
import { TooManyRows } from '../../reconcile/their-rows.ts';
import { ownSettings } from '../../report/compile.ts';
import { schedulingSettings } from '../../report/stream.ts';
import { parametersIn } from '../export/parameters.ts';
import { ReportGate, type Slot } from '../report/gate/report-gate.ts';
import type { ReportDeps } from '../report/handler.ts';
import { requireJsonAccepted } from '../report/negotiation.ts';
import { packed, readWhole, roomForBodies } from '../report/request-body.ts';
import { callerOf } from '../request/caller.ts';
import type { HttpEnv } from '../request/env.ts';
import { Problem } from '../request/problems.ts';
import { formatOfBody, isDamage } from '../request/sent-file.ts';
import { type ComparisonAsked, comparisonAsked, comparisonParameters } from './parameters.ts';

export interface ComparisonDeps
  extends Pick<ReportDeps, 'catalog' | 'damage' | 'reader' | 'gate' | 'routingOf' | 'timeoutSeconds'> {
  /** Of the user who reads; checks how a file is read. */
  readonly store: Store;
}

/** The most bytes of all files together, each from its arrival to the end of its comparison; one account may have half. */
const filesAtOnceBytes = 32 << 20;
/**
 * What one side may have in memory, some 40,000 rows by day and key. A comparison holds seven at most, while an explanation is
 * applied: the file's rows, both sides as they are, and both before and after the explanation.
 */
const maxSideBytes = 8 << 20;
/** Comparisons that run at once. The gate gives one account half of the places: one. */
const mostAtOnce = 2;

const name = 'the file';
/** The mapping that a request amounts to, in messages. */
const thisRequest = 'this request';

/** For each family what compares a file of the other side with it. Nothing of the file is kept. */
export function comparisons({
  catalog,
  damage,
  store,
  reader,
  gate,
  routingOf,
  timeoutSeconds,
}: ComparisonDeps): (family: string) => Handler<HttpEnv> {
  const room = roomForBodies(filesAtOnceBytes);
  const turns = new ReportGate({ maxConcurrent: mostAtOnce });
  return (family) => {
    const input = comparisonParameters(catalog, family);
    return async function comparisonHandler(c) {
      requireJsonAccepted(c);
      const format = formatOfBody(c.req.header('content-type'));
      const asked = comparisonAsked(input, parametersIn(new URL(c.req.url)));
      const account = c.get('account');
      const place = room.enter(account);
      const slots: Slot[] = [];
      try {
        const bytes = await readWhole(c.env, place, maxFileBytes);
        c.set('received', { body_bytes: bytes.length });
        // The loader would unpack it, to any size.
        if (packingMark(bytes) !== 'none') throw packed();
        const caller = callerOf(c);
        slots.push(await turns.enter(account, 'small', caller));
        slots.push(await gate.enter(account, 'large', caller));
        const deadline = AbortSignal.timeout(timeoutSeconds * 1000);
        const signal = AbortSignal.any([caller, deadline]);
        const placed = routingOf(account);
        // The ledger lies elsewhere than the events of the account.
        const routing = placed && { ...placed, shards: 'all' as const };
        const owners = { [rollupTable(family, [])]: 'account_id', events: familyOf(catalog, family).owner };
        const settings = {
          // Also of a statement that reads their file alone.
          ...ownSettings({ account, routing }, owners),
          ...schedulingSettings(false, timeoutSeconds),
          max_result_bytes: maxSideBytes,
          // What fails says why, instead of breaking off.
          wait_end_of_query: 1,
        };
        try {
          const whose = {
            reader: reader.with({ signal }, settings),
            ...{ catalog, family, account, routing, namesFiles: false },
            timezone: await reportTimezone(store),
          };
          const sent = heldInput(name, [format], bytes);
          const answer = await compared({ store, damage }, whose, sent, asked, signal);
          return c.body(`{"result":${answer}}`, 200, { 'content-type': 'application/json', Vary: 'Accept' });
        } catch (error) {
          throw deadline.aborted && !caller.aborted ? new Problem('report_timeout') : asProblem(error, asked);
        }
      } finally {
        for (const slot of slots) slot.leave();
        place.leave();
      }
    };
  };
}

type Whose = Parameters<typeof compareReport>[0];

async function compared(
  { store, damage }: Pick<ComparisonDeps, 'store' | 'damage'>,
  whose: Whose,
  input: Input,
  asked: ComparisonAsked,
  signal: AbortSignal,
): Promise<string> {
  const { start_time: from, end_time: to, metrics: figures, tolerance } = asked;
  const content = JSON.stringify(await mappingOf(whose, input, asked));
  const report = await readTheirFile(store, whose.reader, whose, {
    ...{ input, part: { from, to }, maxBytes: maxSideBytes, signal },
    mapping: { mapping: { name: thisRequest, content } },
  });
  const part = { from, to, figures };
  const reconciled = await compareReport(whose, report, part, name, () => damage.parts());
  const told = { ...report, rejects: report.rejects.map(withoutHints) };
  return answerOf(reconciled, told, tolerance, mostRows);
}

const withoutTotals = 'the report without them if they are totals; if not, the operator can compare it';

/**
 * How the file is read: as its columns suggest, and as the request names them. What the suggestion would ask a person for is left
 * out, where a report can be compared without it.
 */
async function mappingOf(
  { catalog, family }: Whose,
  input: Input,
  { columns, timezone }: ComparisonAsked,
): Promise<object> {
  const suggestion = await suggestedMapping({ input }, { columns });
  const { fill_in = {}, ...mapping } = suggestion?.mapping ?? { map: columns };
  const { map = {}, set = {}, expressions = {} } = mapping;
  const figures = Object.values(familyOf(catalog, family).measures).map(({ sumOf }): string => sumOf);
  // Without a word a figure whose column is known would be missing, and totals would count.
  const doubtful = suggestion?.doubtful.filter((field) => ['where', ...figures].includes(field)) ?? [];
  const needed = ['event_time', keyOf(catalog, family), ...Object.keys(columns), ...doubtful];
  for (const field of suggestion ? needed : []) {
    if ([map, set, expressions].some((fields) => Object.hasOwn(fields, field))) continue;
    // The rest of what it says is for those who write mappings.
    const rest = field === 'where' ? ': give where' : ': ';
    const [what] = (fill_in[field] ?? `no column is known to hold ${field}`).split(rest);
    const days = 'the day in each record as YYYY-MM-DD';
    const written = { event_time: days, where: withoutTotals }[field] ?? 'numbers as 1234.5';
    const isDoubtful = suggestion?.doubtful.includes(field);
    throw new Problem(
      'file_unreadable',
      `${name}: ${what}: ${isDoubtful ? `write ${written}` : `name its column ${field}`}`,
      isDoubtful ? {} : { field: `columns.${field}` },
    );
  }
  return { ...mapping, ...(timezone !== undefined && { timezone }) };
}

function asProblem(error: unknown, { columns }: ComparisonAsked): unknown {
  if (error instanceof NothingToCompare && error.outside)
    return new Problem('invalid_request', error.message, {
      field: error.outside === 'from' ? 'start_time' : 'end_time',
    });
  if (error instanceof MappingError) {
    const [, field = '', reason = ''] = mappingPlace.exec(error.message) ?? [];
    const parameter = Object.hasOwn(columns, field) ? `columns.${field}` : field;
    if (parameter === 'timezone' || parameter !== field)
      return new Problem('invalid_request', `${parameter}: ${reason}`, { field: parameter });
  }
  if (error instanceof InputError || error instanceof MappingError || error instanceof NothingToCompare)
    return new Problem('file_unreadable', withoutHints(error.message));
  if (isDamage(error)) return new Problem('file_unreadable', 'the file is damaged: it cannot be decoded');
  if (error instanceof TooManyRows || isTooMuch(error))
    return new Problem(
      'invalid_request',
      'there are too many rows for one comparison: choose fewer days, or split the file',
      { field: 'start_time' },
    );
  return error;
}

/** Whether one statement reached its own limit: Parquet and Avro unpack to any size. The limit of all may be due to others. */
function isTooMuch(error: unknown): boolean {
  const isOfRows = error instanceof Error && 'type' in error && error.type === 'TOO_MANY_ROWS_OR_BYTES';
  return isOfRows || lacksMemory(error) === 'statement';
}

const mappingPlace = new RegExp(`^${thisRequest}: (?:map\\.)?(\\w+): (.*)$`, 's');
