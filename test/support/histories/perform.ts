import type { Change, Part } from './judge.ts';
import type { Session } from './session.ts';

export interface CommandGround {
  readonly session: Session;
  /** For the files that commands read. */
  readonly folder: string;
  readonly changes: Change[];
  /** What the next command has in its environment. */
  readonly env: () => Record<string, string>;
  readonly onStep: (text: string) => void;
}

export interface About {
  readonly account: string;
  readonly subject: string;
  /** Whether it has to have done all of its parts when it is done; else any of them. */
  readonly how?: 'all' | 'some';
}

export interface Performed extends Change {
  readonly isDone: boolean;
  readonly isRefused: boolean;
}

/** Runs a command and writes down what it may have done. @returns that, and whether it had to refuse it */
export async function perform(
  { session, changes, env, onStep }: CommandGround,
  { account, subject, how = 'all' }: About,
  args: readonly string[],
  parts: readonly Part[],
): Promise<Performed> {
  const own = env();
  const begin = performance.now();
  const { code, signal, stderr } = await session.run(args, own);
  const end = performance.now();
  // 4: and some rows were rejected.
  const isDone = code === 0 || code === 4;
  const last = isDone ? '' : (stderr.trim().split('\n').at(-1) ?? '');
  const words = args.filter((word) => !word.startsWith('--')).map((word) => word.split('/').at(-1));
  const told = `${words.join(' ')}: ${signal ?? code} ${last.slice(0, 200)} (${Math.round(begin)}-${Math.round(end)})`;
  const change = { told, account, subject, begin, end, done: isDone && how === 'all', parts };
  // Then no answer may show anything of it. One that ends because events are damaged is given again.
  const isRefused = /Nothing was changed\./.test(last);
  if (!isRefused) changes.push(change);
  onStep(`${account}: ${told}`);
  return { ...change, isDone, isRefused };
}
