import { LRUCache } from 'lru-cache';
import type { Summary } from '../stream.ts';

/** How many rows a report has, once anybody knows; null if nobody will. */
export interface RowCount {
  known?: number | null;
}

/** A whole report: what follows the head, and what else is said of it. */
export interface Answer {
  readonly body: Buffer;
  /** `yyyy-mm-dd`, ascending: the days of the range whose revenue is unconfirmed. */
  readonly unconfirmedDates: readonly string[];
  readonly summary: Summary;
  /** The statement that it comes from. */
  readonly query: string;
  readonly rows: RowCount;
}

/** What was true when the store was in `state`. */
export interface Kept {
  readonly state: string;
  readonly answer?: Answer;
  /** All unconfirmed days of an account, ascending. */
  readonly days?: readonly string[];
}

/** Drops what was not used for longest. */
export type Memory = LRUCache<string, Kept>;

/** What an entry takes besides its bytes: 1,100 were measured with short keys. */
const overheadBytes = 1_100;

export function openMemory(maxBytes: number): Memory {
  return new LRUCache({ maxSize: Math.max(1, maxBytes), sizeCalculation: bytesOf });
}

function bytesOf({ answer, days }: Kept, key: string): number {
  let bytes = overheadBytes + 2 * key.length + (answer?.body.length ?? 0);
  bytes += 40 * ((days?.length ?? 0) + (answer?.unconfirmedDates.length ?? 0));
  return bytes;
}
