import type { KeyObject } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import type * as z from 'zod';
import type { Store } from '../../clickhouse/client.ts';
import { earlyTimerMs } from '../../clickhouse/timings.ts';
import type { Input } from '../../ingest/input/input.ts';
import type { ListReading } from '../../ingest/lists/lookup-lists.ts';
import type { Links } from '../accounts/links.ts';
import { type Actor, recorded } from './audit.ts';

/** What an operation works with, whoever asks for it. */
export interface Context {
  readonly store: Store;
  readonly by: Actor;
  readonly links: Links;
  /** How long services of reports believe what they knew of the store. */
  readonly answerTrustMs: number;
  /** Signs what is closed; absent: nothing does. */
  readonly signingKey?: KeyObject | undefined;
  /** Called with the load that is waited for. */
  readonly onWait?: (load: string) => void;
  /** Ends what waits. */
  readonly signal?: AbortSignal;
}

/** A file of the command line, or the body of a request. */
export interface GivenFile extends ListReading {
  readonly input: Input;
}

/**
 * What an operator can do. The command line and the HTTP service both ask for it with one input, which is judged here alone.
 * Methods, because a list of operations holds those of any input.
 */
export interface Operation<Shape extends z.ZodObject = z.ZodObject, Answer = unknown> {
  /** The words of its command. Its path is `/v1/` and the words. */
  readonly name: string;
  readonly summary: string;
  readonly input: Shape;
  /** Absent: {@link Rows}. */
  readonly answer?: z.ZodType<Answer>;
  /** What changes is recorded in the audit log; what changes reports is answered when all of them show it. */
  readonly changes: 'nothing' | 'something' | 'reports';
  run(context: Context, input: z.output<Shape>): Promise<Answer>;
  /** What the audit log keeps of it; absent: all. */
  recordedInput?(input: z.output<Shape>): unknown;
  recordedAnswer?(answer: Answer): unknown;
}

/** An operation that reads a file. */
export interface FileOperation<Shape extends z.ZodObject = z.ZodObject, Answer = unknown>
  extends Omit<Operation<Shape, Answer>, 'run'> {
  /** What the file has. */
  readonly file: string;
  run(context: Context, input: z.output<Shape>, file: GivenFile): Promise<Answer>;
}

/** Rows that ClickHouse writes; JavaScript passes them on. */
export class Rows {
  readonly mediaType: string;
  readonly write: (out: NodeJS.WritableStream) => Promise<void>;

  constructor(mediaType: string, write: (out: NodeJS.WritableStream) => Promise<void>) {
    this.mediaType = mediaType;
    this.write = write;
  }
}

/** Does it, with a record in the audit log of what changes. @throws {InvalidRequest} and what the store throws */
export async function perform<Shape extends z.ZodObject, Answer>(
  operation: Operation<Shape, Answer> | FileOperation<Shape, Answer>,
  context: Context,
  input: z.output<Shape>,
  file?: GivenFile,
): Promise<Answer> {
  const run = async () => {
    if (!('file' in operation)) return operation.run(context, input);
    if (!file) throw new Error(`${operation.name} needs a file`);
    return operation.run(context, input, file);
  };
  const { name, changes } = operation;
  if (changes === 'nothing') return run();
  const asked = operation.recordedInput ? operation.recordedInput(input) : input;
  const record = { operation: name, input: { ...Object(asked), ...(file && { file: file.input.name }) } };
  return recorded(context.store, context.by, record, async () => {
    const answer = await run();
    if (changes === 'reports' && context.answerTrustMs > 0) await delay(context.answerTrustMs + earlyTimerMs);
    return { result: answer, outcome: operation.recordedAnswer ? operation.recordedAnswer(answer) : answer };
  });
}
