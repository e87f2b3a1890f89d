import { once } from 'node:events';
import { pipeline, type Readable, Transform, type TransformCallback } from 'node:stream';

/**
 * More than ClickHouse writes when a statement fails after the first byte: 16 KiB of text at most, behind all else,
 * packed as the rows are.
 */
const heldBytes = 32 * 1024;

/** What is sent before and after the bytes of ClickHouse. */
interface Around {
  readonly head: string;
  readonly end: () => Promise<string>;
}

/**
 * Passes an answer on, but for its last bytes until the end has come. If it breaks off there is no end, so that the
 * caller does not get ClickHouse's reason, which names files and tables. Pieces are not copied.
 * @returns once there is something to send: a failure before is still told as a problem
 * @throws when it breaks off before, naming the statement: ClickHouse's query log says why
 */
export async function heldBack(body: Readable, statement: string, around: Around): Promise<Readable> {
  const ignored = () => undefined;
  // A failure is told to whoever reads what is returned, also when it comes before anybody does.
  const sendable = pipeline(body, new HoldBack(around), ignored).on('error', ignored);
  try {
    await once(sendable, 'readable');
  } catch (cause) {
    throw brokeOff(statement, cause);
  }
  return sendable;
}

export function brokeOff(statement: string, cause: unknown): Error {
  return new Error(`statement ${statement} broke off`, { cause });
}

class HoldBack extends Transform {
  readonly #held: Buffer[] = [];
  #bytes = 0;
  #head: string;
  readonly #end: Around['end'];

  constructor({ head, end }: Around) {
    super();
    this.#head = head;
    this.#end = end;
  }

  override _transform(piece: Buffer, _: BufferEncoding, done: TransformCallback): void {
    this.#held.push(piece);
    this.#bytes += piece.length;
    let [first] = this.#held;
    while (first && this.#bytes - first.length >= heldBytes) {
      this.#held.shift();
      this.#bytes -= first.length;
      this.#send(first);
      [first] = this.#held;
    }
    done();
  }

  override _flush(done: TransformCallback): void {
    for (const piece of this.#held) this.#send(piece);
    this.#end().then((end) => done(null, end === '' ? undefined : end), done);
  }

  /** The head never goes alone: what follows may still be a problem. */
  #send(piece: Buffer): void {
    if (this.#head !== '') this.push(this.#head);
    this.#head = '';
    this.push(piece);
  }
}
