/** Options of loading that messages name; each is a member of a mapping file, too. */
export type HintedOption = 'dates' | 'encoding' | 'ignore_unknown' | 'map' | 'records' | 'round_money';

/**
 * Advice for the end of a sentence, in brackets: what an option does, as a command has it and as a mapping has it.
 * @param effect completes the sentence that begins with the option
 */
export function optionHint(name: HintedOption, effect: string, value?: string | true): string {
  const flag = `--${name.replaceAll('_', '-')}${typeof value === 'string' ? ` ${value}` : ''}`;
  const member = `${JSON.stringify(name)}${value === undefined ? '' : `: ${JSON.stringify(value)}`}`;
  return hint(flag, `${member} in a mapping`, effect);
}

/** The same, where what a sender over HTTP does is no member of a mapping. */
export function hint(flag: string, overHttp: string, effect: string): string {
  return ` (${flag}, or ${overHttp}, ${effect})`;
}

const anyHint = / \(--[a-z][^()]*?, or ([^()]*?), ([^()]*)\)/g;

/** A message for those who send, and have no command line. */
export const forSenders = (message: string): string => message.replace(anyHint, ' ($1 $2)');

/** A message for those who have no mapping either. */
export const withoutHints = (message: string): string => message.replace(anyHint, '');
