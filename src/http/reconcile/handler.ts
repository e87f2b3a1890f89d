import type { Handler } from 'hono';
import { familyOf, rollupTable } from '../../../catalog/breakdowns.ts';
import type { Store } from '../../../clickhouse/client.ts';
import { MappingError } from '../../../ingest/event/mapping.ts';
import type { FormatName } from '../../../ingest/formats/formats.ts';
import { heldInput } from '../../../ingest/input/held-input.ts';
import { InputError } from '../../../ingest/input/input-error.ts';
import { reportTimezone } from '../../../ingest/load/report-timezone.ts';
import { answerOf } from '../../reconcile/answer.ts';
import { keyOf } from '../../reconcile/model/sides.ts';
import { NothingToCompare } from '../../reconcile/reconcile.ts';
import { compareReport, readTheirFile, suggestedMapping } from '../../reconcile/their-file.ts';
import { ownSettings } from '../../report/compile.ts';
import { InvalidRequest } from '../../report/invalid-request.ts';
import { schedulingSettings } from '../../report/stream.ts';
import type { ReportDeps } from '../report/handler.ts';
import { requireJsonAccepted } from '../report/negotiation.ts';
import { readWhole, roomForBodies } from '../report/request-body.ts';
import { callerOf } from '../request/caller.ts';
import type { HttpEnv } from '../request/env.ts';
import { Problem } from '../request/problems.ts';
import { formatOfBody, isDamage } from '../request/sent-file.ts';
import { type ComparisonAsked, comparisonAsked, comparisonParameters } from './parameters.ts';

export interface ComparisonDeps
  extends Pick<ReportDeps, 'catalog' | 'reader' | 'gate' | 'routingOf' | 'timeoutSeconds'> {
  /** Of the user who reads; checks how a file is read. */
  readonly store: Store;
}

/** What their file may have. */
export const maxFileBytes = 8 << 20;
/** What all files have that arrive or are being compared; those of one account half of it. */
const filesAtOnceBytes = 32 << 20;
/** What one side may have in memory, some 80,000 rows by day and key: a comparison holds four of them at most. */
const maxSideBytes = 16 << 20;
/** Rows that an answer lists. */
const mostRows = 1_000;

const name = 'the file';

/** For each family what compares a file of the other side with it. Nothing of the file is kept. */
export function comparisons({
  catalog,
  store,
  reader,
  gate,
  routingOf,
  timeoutSeconds,
}: ComparisonDeps): (family: string) => Handler<HttpEnv> {
  const room = roomForBodies(filesAtOnceBytes);
  return (family) => {
    const input = comparisonParameters(catalog, family);
    return async function comparisonHandler(c) {
      requireJsonAccepted(c);
      const format = formatOfBody(c.req.header('content-type'));
      const asked = comparisonAsked(input, new URL(c.req.url).searchParams);
      const account = c.get('account');
      const place = room.enter(account);
      try {
        const bytes = await readWhole(c.env, place, maxFileBytes);
        c.set('received', { body_bytes: bytes.length });
        const caller = callerOf(c);
        const deadline = AbortSignal.timeout(timeoutSeconds * 1000);
        const slot = await gate.enter(account, 'large', caller);
        try {
          const placed = routingOf(account);
          // The ledger lies elsewhere than the events of the account.
          const routing = placed && { ...placed, shards: 'all' as const };
          const owners = { [rollupTable(family, [])]: 'account_id', events: familyOf(catalog, family).owner };
          const settings = {
            // Also of a statement that reads their file alone.
            ...ownSettings({ account, routing }, owners),
            ...settingsOf(timeoutSeconds),
          };
          const whose = {
            reader: reader.with({ signal: AbortSignal.any([caller, deadline]) }, settings),
            ...{ catalog, family, account, routing, namesFiles: false },
            timezone: await reportTimezone(store),
          };
          const answer = await compared(store, whose, { bytes, format, asked });
          return c.body(`{"result":${answer}}`, 200, { 'content-type': 'application/json', Vary: 'Accept' });
        } catch (error) {
          throw deadline.aborted && !caller.aborted ? new Problem('report_timeout') : asProblem(error);
        } finally {
          slot.leave();
        }
      } finally {
        place.leave();
      }
    };
  };
}

const settingsOf = (timeoutSeconds: number) => ({
  ...schedulingSettings(false),
  max_execution_time: timeoutSeconds,
  max_result_bytes: maxSideBytes,
  result_overflow_mode: 'throw',
  // What fails says why, instead of breaking off.
  wait_end_of_query: 1,
  cancel_http_readonly_queries_on_client_close: 1,
});

type Whose = Parameters<typeof compareReport>[0];

interface SentFile {
  readonly bytes: Buffer;
  readonly format: FormatName;
  readonly asked: ComparisonAsked;
}

async function compared(store: Store, whose: Whose, { bytes, format, asked }: SentFile): Promise<string> {
  const { start_time: from, end_time: to, metrics: figures, tolerance } = asked;
  const input = heldInput(name, [format], bytes);
  const mapping = { name: 'this request', content: JSON.stringify(await mappingOf(whose, input, asked)) };
  const report = await readTheirFile(store, whose.reader, whose, { input, format, mapping: { mapping } });
  const reconciled = await compareReport(whose, report, { from, to, figures }, name);
  return answerOf(reconciled, report, { tolerance }, mostRows);
}

/**
 * How the file is read: as its columns suggest, but for those that the request names. What the suggestion would ask a person for
 * is left out, where a report can be compared without it.
 */
async function mappingOf(
  { catalog, family }: Whose,
  input: ReturnType<typeof heldInput>,
  { columns, timezone }: ComparisonAsked,
): Promise<object> {
  const suggestion = await suggestedMapping({ input });
  const { fill_in = {}, map = {}, expressions = {}, ...rest } = suggestion?.mapping ?? {};
  for (const field of ['event_time', keyOf(catalog, family)]) {
    const open = fill_in[field];
    if (open === undefined || columns[field] !== undefined) continue;
    // The rest of what it says is for those who write mappings.
    const [what] = open.split(': ');
    throw new InputError(`${name}: ${what}: name the column of ${field} with columns.${field}`);
  }
  const others = Object.entries(expressions).filter(([field]) => columns[field] === undefined);
  return {
    ...rest,
    map: { ...map, ...columns },
    expressions: Object.fromEntries(others),
    ...(timezone !== undefined && { timezone }),
  };
}

function asProblem(error: unknown): unknown {
  if (error instanceof InputError || error instanceof MappingError || error instanceof NothingToCompare)
    return new Problem('file_unreadable', error.message);
  if (isDamage(error)) return new Problem('file_unreadable', 'the file is damaged: it cannot be decoded');
  if (error instanceof Error && 'type' in error && error.type === 'TOO_MANY_ROWS_OR_BYTES')
    return new InvalidRequest(
      'start_time',
      'and end_time leave too many rows to compare at once: choose fewer days',
    );
  return error;
}
