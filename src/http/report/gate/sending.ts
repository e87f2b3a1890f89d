import { finished, Writable } from 'node:stream';
import type { HttpBindings } from '@hono/node-server';
import { AnswerPace, type PaceRules } from './pace.ts';

/** Why the service broke off an answer; the outcome is what it is called in log and metrics. */
export class BrokenOff extends Error {
  readonly outcome: 'caller_too_slow' | 'caller_stopped_reading';

  constructor(outcome: BrokenOff['outcome'], reason: string) {
    super(reason);
    this.outcome = outcome;
  }
}

/** An answer on its connection. It is broken off when its caller takes nothing for `sendTimeoutSeconds`. */
export class Sending {
  readonly pace: AnswerPace;
  readonly #http: HttpBindings;
  readonly #sendTimeoutSeconds: number;
  #reason: BrokenOff | undefined;

  constructor(http: HttpBindings, rules: PaceRules, sendTimeoutSeconds: number) {
    this.#http = http;
    this.#sendTimeoutSeconds = sendTimeoutSeconds;
    this.pace = new AnswerPace(rules, this.#accepted);
  }

  /** Why the service broke it off, if it did. */
  get reason(): BrokenOff | undefined {
    return this.#reason;
  }

  /** Looks how far it has come. */
  tick(): void {
    this.pace.tick(this.#accepted, this.#http.outgoing.writableLength > 0);
    const seconds = this.#sendTimeoutSeconds;
    if (this.pace.stillMs > seconds * 1000) {
      this.breakOff(new BrokenOff('caller_stopped_reading', `the caller read nothing for ${seconds} s`));
    }
  }

  /** Resets the connection: ended otherwise, the kernel would keep megabytes for a caller that does not read. */
  breakOff(reason: BrokenOff): void {
    if (this.#reason) return;
    this.#reason = reason;
    this.#http.incoming.socket.resetAndDestroy();
  }

  /** Bytes that the kernel took over on this connection, where another answer may go first. */
  get #accepted(): number {
    const { socket } = this.#http.incoming;
    return socket.bytesWritten - socket.writableLength;
  }
}

/** An answer that is on its way to its caller. */
export type Answer = Pick<Sending, 'pace' | 'tick' | 'breakOff'>;

/** In pieces of 64 KiB, as they come, the largest report takes the service a quarter more CPU; 1 MiB gains no more. */
const batchBytes = 512 * 1024;

/**
 * Where to write an answer. A piece goes out at once; those that come before the next turn of the event loop, or before
 * the kernel has taken the last batch, go together. It fails with its connection and destroys it when it fails.
 */
export function inBatches(outgoing: HttpBindings['outgoing']): Writable {
  const batches = new Writable({
    highWaterMark: batchBytes,
    writev(pieces, done) {
      outgoing.cork();
      for (const { chunk } of pieces) outgoing.write(chunk);
      outgoing.uncork();
      const next = () => setImmediate(done);
      if (outgoing.writableNeedDrain) outgoing.once('drain', next);
      else next();
    },
    final(done) {
      outgoing.end(done);
    },
    destroy(error, done) {
      if (error) outgoing.destroy(error);
      done(error);
    },
  });
  finished(outgoing, (error) => {
    if (error) batches.destroy(error);
  });
  return batches;
}
