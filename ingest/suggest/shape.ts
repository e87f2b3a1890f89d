/** How the values of a column are read: as they are, by an expression, or not without an answer. */
export interface Shape {
  /** Absent: as they are. */
  readonly expression?: string;
  readonly reason?: string;
  /** What a person has to say before the column can be read. */
  readonly question?: string;
  /** What the question is about, if not the field itself. */
  readonly asks?: 'timezone';
  /** Dates are those of a sheet. */
  readonly dates?: 'excel';
}
