/** What was given is not what is asked for; `field` is the first field at fault, absent for the body itself. */
export class InvalidRequest extends Error {
  /** A field of a field after a dot: `filters.device`, `order_by.0.field`. */
  readonly field: string | undefined;

  constructor(field: string | undefined, reason: string) {
    super(field === undefined ? reason : `${field} ${reason}`);
    this.field = field;
  }
}
