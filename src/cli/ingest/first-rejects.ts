import { eventFields } from '../../../catalog/events.ts';
import { shownRejects } from '../../../ingest/delivery/chunk-outcome.ts';
import { unknownField } from '../../../ingest/event/judge.ts';
import { placeOf } from '../../../ingest/event/record-place.ts';
import type { Input } from '../../../ingest/input/input.ts';
import type { RejectedRow } from '../../../ingest/rejects/rejected-rows.ts';
import { line } from '../command/command.ts';

/** The first rejected rows of some files in the order of the files, whichever chunk ends first. */
export class FirstRejects {
  readonly #order: ReadonlyMap<string, number>;
  readonly #first: { readonly file: number; readonly line: number; readonly text: string }[] = [];
  #hasUnknown = false;

  constructor(files: readonly Input[]) {
    this.#order = new Map(files.map(({ name }, n) => [name, n]));
  }

  /** Of each chunk at least the first ones are to be added. */
  readonly add = ({ line, faults }: RejectedRow, text: string, file: string): void => {
    this.#first.push({ file: this.#order.get(file) ?? 0, line, text });
    const lineOf = (place: number) => placeOf(place).line;
    this.#first.sort((a, b) => a.file - b.file || lineOf(a.line) - lineOf(b.line) || a.line - b.line);
    this.#first.length = Math.min(this.#first.length, shownRejects);
    this.#hasUnknown ||= faults.some(({ reason }) => reason === unknownField);
  };

  texts(): string[] {
    const rejected = this.#first.map(({ text }) => line([`rejected: ${text}`]));
    return this.#hasUnknown
      ? [...rejected, `the fields of an event are ${eventFields.join(', ')}`]
      : rejected;
  }
}
