/**
 * Where a rejected event is: the line of its record, and above these bits the number of the event in it, from 1; 0 where
 * a record is one event.
 */
export const lineBits = 40;
const lines = 2 ** lineBits;

export function placeOf(place: number): { readonly line: number; readonly event: number } {
  return { line: place % lines, event: Math.floor(place / lines) };
}

export function placeAt(line: number, event: number): number {
  return line + event * lines;
}

/** `line 7`, or `line 7, event 2`. */
export function describePlace(unit: string, place: number): string {
  const { line, event } = placeOf(place);
  return event > 0 ? `${unit} ${line}, event ${event}` : `${unit} ${line}`;
}

/** The same in SQL. */
export const lineIn = (place: string): string => `bitAnd(${place}, ${lines - 1})`;
export const eventIn = (place: string): string => `bitShiftRight(${place}, ${lineBits})`;
/** The order of the file. */
export const fileOrder = (place: string): string => `${lineIn(place)}, ${place}`;
