import * as z from 'zod';
import { requireLoad, writeLoad, writeLoads, writeRejects } from '../../ingest/history/load-history.ts';
import { previewUnload, unload as takeBack, type Unloaded } from '../../ingest/history/unload.ts';
import { withoutHints } from '../../ingest/input/option-hint.ts';
import { describeRejected, dismissRejects, ofLoads } from '../../ingest/rejects/rejected-rows.ts';
import { replay as replayRows } from '../../ingest/replay/replay.ts';
import { writeAudit } from './audit.ts';
import { type Context, type FileOperation, type Operation, Rows } from './operation.ts';
import { instant, load, wholeNumber } from './values.ts';

/** What was loaded and changed, the rows that were not loaded, and loads that are taken back. */

/** Of rows, by the format that is asked for. */
export const mediaTypes = {
  json: 'application/json',
  ndjson: 'application/x-ndjson',
  csv: 'text/csv; charset=utf-8',
  table: 'text/plain; charset=utf-8',
} as const;

const format = <const Name extends keyof typeof mediaTypes>(names: readonly [Name, ...Name[]]) =>
  z
    .enum(names, `must be one of ${names.join(', ')}`)
    .default(() => names[0])
    .describe('of the answer');

const listed = z.strictObject({
  limit: wholeNumber('how many to list', 1_000_000).default(50),
  format: format(['json', 'table']),
});

export const loads: Operation<typeof listed, Rows> = {
  name: 'loads',
  summary: 'list loads, newest first',
  input: listed,
  changes: 'nothing',
  async run({ store }, { limit, format }) {
    return new Rows(mediaTypes[format], (out) => writeLoads(store, out, format, limit));
  },
};

const shown = z.strictObject({ load: load(), format: format(['json', 'table']) });

export const showLoad: Operation<typeof shown, Rows> = {
  name: 'loads show',
  summary: 'show one load, its days and what is open',
  input: shown,
  changes: 'nothing',
  async run({ store }, { load, format }) {
    await requireLoad(store, load);
    return new Rows(mediaTypes[format], (out) => writeLoad(store, out, load, format === 'json'));
  },
};

const idsOfLoads = (atLeast: number) =>
  z
    .array(load(), 'must be a list of ids')
    .min(atLeast, 'names no load')
    .max(1000, 'must have at most 1000 ids');

const rejected = z.strictObject({
  load: idsOfLoads(0).default([]).describe('only those of these loads'),
  format: format(['ndjson', 'csv', 'table']),
});

export const rejects: Operation<typeof rejected, Rows> = {
  name: 'rejects',
  summary:
    'list rejected rows that are neither replayed nor dismissed; CSV and NDJSON can be corrected and replayed',
  input: rejected,
  changes: 'nothing',
  async run({ store }, { load: loads, format }) {
    for (const each of loads) await requireLoad(store, each);
    return new Rows(mediaTypes[format], (out) => writeRejects(store, out, loads, format));
  },
};

const dismissed = z.strictObject({ load: idsOfLoads(1).describe('those of these loads') });
const dismissedRows = z.strictObject({ dismissed: z.int().describe('How many rejected rows.') });

export const dismiss: Operation<typeof dismissed, z.infer<typeof dismissedRows>> = {
  name: 'rejects dismiss',
  summary: 'let go of open rejected rows: they are listed and waited for no more',
  input: dismissed,
  answer: dismissedRows,
  changes: 'something',
  async run({ store }, { load: loads }) {
    for (const each of loads) await requireLoad(store, each);
    return { dismissed: await dismissRejects(store, ofLoads, { loads }) };
  },
};

const corrected = z.strictObject({
  load: load('the load that rejected them'),
  dedupe: z
    .boolean('must be true or false')
    .default(false)
    .describe('leave out events whose event_id is already loaded on the same days'),
  round_money: z
    .boolean('must be true or false')
    .default(false)
    .describe('round amounts to six decimal places instead of leaving their rows rejected'),
});
/** How many rows that are still faulty are told; all of them stay rejected. */
const mostReasons = 10;
const replayed = z.strictObject({
  load: z.string().describe('The load that the replay was.'),
  replayed: z.int().describe('Rows that are loaded now.'),
  duplicates: z.int().describe('Rows that were left out, because their event_id is already loaded.'),
  faulty: z.int().describe('Rows that are still faulty. They stay rejected.'),
  skipped: z.int().describe('Rows that were replayed or dismissed before, or are not of this load.'),
  reasons: z.array(z.string()).describe(`The first ${mostReasons} rows that are still faulty.`),
});

export const replay: FileOperation<typeof corrected, z.infer<typeof replayed>> = {
  name: 'replay',
  summary: 'load corrected rejected rows, each of them once',
  file: 'the corrected rejected rows of the load, as the list of them is written in CSV or NDJSON',
  input: corrected,
  answer: replayed,
  changes: 'reports',
  async run(context, { load, dedupe, round_money: roundMoney }, { input }) {
    await requireLoad(context.store, load);
    const options = { dedupe, roundMoney, ...waiting(context) };
    const { loadId, replayed, duplicates, skipped, faulty } = await replayRows(
      context.store,
      load,
      input,
      () => new Date(),
      options,
    );
    const reasons = faulty
      .slice(0, mostReasons)
      .map((row) => withoutHints(describeRejected(load, 'line', row)));
    return { load: loadId, replayed, duplicates, faulty: faulty.length, skipped, reasons };
  },
  recordedAnswer: ({ reasons: _, ...counts }) => counts,
};

const one = z.strictObject({ load: load() });
const unloaded = z.strictObject({
  before: z.boolean().describe('It was taken back or replaced before: there is nothing.'),
  events: z.int().describe('Events that are deleted.'),
  chunks: z.int(),
  months: z.array(z.string()).describe('Months (`yyyy-mm`) whose rollups are rebuilt.'),
  rejected_rows: z.int().describe('Open rejected rows that are deleted.'),
  reopened_rows: z.int().describe('Rejected rows that the load had replayed, and that are open again.'),
  replaced: z
    .array(z.string())
    .describe('Of a replacement the loads that it had replaced: their files can be loaded again, too.'),
  left_out: z
    .array(z.strictObject({ load: z.string(), events: z.int() }))
    .describe(
      'The first ten later loads of these months that left out events whose event_id was loaded already, and how many: if they were of this load, take the later one back and load its file again.',
    ),
});

export const previewOfUnload: Operation<typeof one, z.infer<typeof unloaded>> = {
  name: 'unload preview',
  summary: 'say what taking a load back would delete; change nothing',
  input: one,
  answer: unloaded,
  changes: 'nothing',
  async run({ store }, { load }) {
    return told(await previewUnload(store, load));
  },
};

export const unload: Operation<typeof one, z.infer<typeof unloaded>> = {
  name: 'unload',
  summary: 'take a load back: its events, and its open rejected rows; the file can be loaded again',
  input: one,
  answer: unloaded,
  changes: 'reports',
  async run(context, { load }) {
    return told(await takeBack(context.store, load, () => new Date(), waiting(context)));
  },
};

function told(done: Unloaded): z.infer<typeof unloaded> {
  const { rejectedRows: rejected_rows, reopenedRows: reopened_rows, leftOut, ...rest } = done;
  const lists = { months: [...rest.months], replaced: [...rest.replaced], left_out: [...leftOut] };
  return { ...rest, ...lists, rejected_rows, reopened_rows };
}

export const waiting = ({ onWait, signal }: Context) => ({
  ...(onWait && { onWait }),
  ...(signal && { signal }),
});

const audited = z.strictObject({
  since: instant('only changes since then, yyyy-mm-dd or ISO 8601').optional(),
  limit: wholeNumber('how many to list', 1_000_000).default(1000),
  format: format(['json', 'table']),
});

export const audit: Operation<typeof audited, Rows> = {
  name: 'audit',
  summary: 'list who changed what, and when, newest first',
  input: audited,
  changes: 'nothing',
  async run({ store }, { format, ...range }) {
    return new Rows(mediaTypes[format], (out) => writeAudit(store, out, format, range));
  },
};
