import { blanks } from '../event/reading.ts';

const characters = [',', ';', '|', ':', '~', '^', '#', '!', ' ', '\t', '\u0001'] as const;

/** The character that a text names; undefined for one that cannot separate cells. */
export function delimiterNamed(given: string): string | undefined {
  const delimiter = given === '\\t' || given === 'tab' ? '\t' : given;
  return characters.find((each) => each === delimiter);
}

/** What is told of a text that names no delimiter. @param orBlanks whether `blanks` would be one */
export function noDelimiter(given: string, orBlanks: boolean): string {
  const last = orBlanks ? `, \\t for a tab, or ${blanks} for one or more of either` : ' or \\t for a tab';
  return `${JSON.stringify(given)} cannot separate cells; give one of , ; | : ~ ^ # !, a space${last}`;
}
