/** One step of a command: what it takes away and brings, at one moment. */
export interface Part {
  readonly removes: number;
  readonly adds: number;
  /** It also copies these bits to others, so many places further, in the place of what is there. */
  readonly copies?: { readonly bits: number; readonly places: number };
}

/** What a command may do to what an account has; each of its parts happens once, in any order. Sets are bits of a number. */
export interface Change {
  readonly told: string;
  readonly account: string;
  /** What it is about. */
  readonly subject: string;
  /** Of one clock, in ms, as are all times of a history. */
  readonly begin: number;
  readonly end: number;
  /**
   * It said that it was done: all its parts have happened. Of another one each part may have happened, or may happen until a later
   * command about the same subject says that it is done.
   */
  readonly done: boolean;
  readonly parts: readonly Part[];
}

/** An answer that came whole. */
export interface Answer {
  readonly told: string;
  readonly account: string;
  /** What is read; of each table a change may be seen at another moment. */
  readonly table: string;
  readonly begin: number;
  readonly end: number;
  /** Whether it is what an account has to be told that has these. */
  readonly fits: (state: number) => boolean;
}

export interface History {
  readonly changes: readonly Change[];
  readonly answers: readonly Answer[];
  /** How old an answer may be after a change; a command that says that it is done has waited as long. */
  readonly trustMs: number;
}

/** One way in which all could have happened. */
interface Possible {
  readonly state: number;
  /** Bits of the parts of each change under way that are still to come. */
  readonly left: ReadonlyMap<Change, number>;
  /** Bits of those that came, and leave again where a load finds that they are not whole: it then brings them anew. */
  readonly came: ReadonlyMap<Change, number>;
  readonly seen: ReadonlySet<Answer>;
}

/** More would take minutes; histories are made so that there are some hundred. */
const mostWays = 100_000;

/**
 * What is wrong with a history. Each answer has to be what an account had at one moment between its begin and its end, and all
 * answers from one table have to agree on the order in which changes happened: every way in which they could have happened
 * is followed from moment to moment, and an answer leaves those in which it was true. Nothing is there at first.
 */
export function judge(history: History): string[] {
  const tables = new Map(history.answers.map((answer) => [`${answer.account} ${answer.table}`, answer]));
  return [...tables.values()].flatMap(({ account, table }) => {
    const changes = history.changes.filter((change) => change.account === account);
    const answers = history.answers.filter((answer) => answer.account === account && answer.table === table);
    return judgeTable({ ...history, changes, answers });
  });
}

function judgeTable({ changes, answers, trustMs }: History): string[] {
  const moments = [
    ...changes.flatMap((change) => [
      { at: change.begin, begins: true, change },
      { at: change.done ? Math.max(change.begin, change.end - trustMs) : change.end, begins: false, change },
    ]),
    ...answers.flatMap((answer) => [
      { at: answer.begin - trustMs, begins: true, answer },
      { at: answer.end, begins: false, answer },
    ]),
  ].sort((a, b) => a.at - b.at || Number(b.begins) - Number(a.begins));
  const open = new Set<Answer>();
  const abandoned = new Set<Change>();
  let ways: Possible[] = [{ state: 0, left: new Map(), came: new Map(), seen: new Set() }];
  for (const moment of moments) {
    if ('change' in moment) {
      const { change, begins } = moment;
      if (begins) {
        const all = 2 ** change.parts.length - 1;
        ways = ways.map((way) => ({ ...way, left: new Map([...way.left, [change, all]]) }));
      } else if (change.done) {
        const over = [...abandoned].filter(
          ({ subject, end }) => subject === change.subject && end <= change.begin,
        );
        for (const each of over) abandoned.delete(each);
        ways = ways
          .filter(({ left }) => left.get(change) === 0)
          .map((way) => without(way, [change, ...over]));
      } else abandoned.add(change);
    } else {
      const { answer, begins } = moment;
      if (begins) open.add(answer);
      else {
        open.delete(answer);
        const agreeing = ways.filter(({ seen }) => seen.has(answer));
        if (agreeing.length === 0) return [describe(answer, ways)];
        ways = agreeing.map((way) => ({
          ...way,
          seen: new Set([...way.seen].filter((each) => each !== answer)),
        }));
      }
    }
    ways = everyWay(ways, open, abandoned);
  }
  return [];
}

/** All that can have become of these since. */
function everyWay(
  ways: readonly Possible[],
  open: ReadonlySet<Answer>,
  abandoned: ReadonlySet<Change>,
): Possible[] {
  const found = new Map<string, Possible>();
  const add = (way: Possible) => {
    const fitting = [...open].filter((answer) => !way.seen.has(answer) && fits(answer, way.state));
    const known = fitting.length > 0 ? { ...way, seen: new Set([...way.seen, ...fitting]) } : way;
    const key = keyOf(known);
    if (!found.has(key)) found.set(key, known);
    if (found.size > mostWays)
      throw new Error('a history with too many ways in which it could have happened');
  };
  for (const way of ways) add(way);
  for (const way of found.values()) {
    for (const [change, parts] of way.left) {
      for (const [n, part] of change.parts.entries()) {
        const bit = 1 << n;
        const [left, came] = [new Map(way.left), new Map(way.came)];
        if (parts & bit) {
          const state = after(way.state, part);
          // What changes nothing now may still come later.
          if (!change.done && state === way.state) continue;
          left.set(change, parts & ~bit);
          if (change.done) settle([left, came], change, part.removes | part.adds);
          if (onlyAdds(part) && state !== way.state) came.set(change, (came.get(change) ?? 0) | bit);
          add({ ...way, state, left, came });
        } else if ((came.get(change) ?? 0) & bit && isMended(change, part, way, abandoned)) {
          left.set(change, parts | bit);
          came.set(change, (came.get(change) ?? 0) & ~bit);
          add({ ...way, state: way.state & ~part.adds, left, came });
        }
      }
    }
  }
  return [...found.values()];
}

function after(state: number, { removes, adds, copies }: Part): number {
  const changed = (state & ~removes) | adds;
  if (!copies) return changed;
  const { bits, places } = copies;
  return (changed & ~(bits << places)) | ((state & bits) << places);
}

const onlyAdds = ({ removes, copies }: Part): boolean => removes === 0 && copies === undefined;

/** Whether what a command has brought may be taken back: by itself, while it is under way, or by another that brings the same. */
function isMended(
  change: Change,
  { adds }: Part,
  { left }: Possible,
  abandoned: ReadonlySet<Change>,
): boolean {
  if (!abandoned.has(change)) return true;
  const brings = (other: Change) => other.parts.some((part) => onlyAdds(part) && part.adds & adds);
  return [...left.keys()].some(
    (other) => other !== change && other.subject === change.subject && brings(other),
  );
}

/** What is done for good is not undone by a command about the same that was given up before. */
function settle(maps: readonly Map<Change, number>[], by: Change, bits: number): void {
  for (const map of maps) {
    for (const [change, parts] of map) {
      if (change.done || change.subject !== by.subject || change.end > by.begin) continue;
      const others = change.parts.map(({ removes, adds }, n) => ((removes | adds) & bits ? 0 : 1 << n));
      map.set(change, parts & others.reduce((sum, bit) => sum | bit, 0));
    }
  }
}

/** Recounted once for each state: ways by the ten thousand have some hundred of them. */
function fits(answer: Answer, state: number): boolean {
  const ofStates = recounted.get(answer) ?? new Map<number, boolean>();
  recounted.set(answer, ofStates);
  const known = ofStates.get(state) ?? answer.fits(state);
  ofStates.set(state, known);
  return known;
}

const recounted = new WeakMap<Answer, Map<number, boolean>>();

const numbers = new WeakMap<object, number>();
let lastNumber = 0;
function numberOf(of: object): number {
  const known = numbers.get(of) ?? ++lastNumber;
  numbers.set(of, known);
  return known;
}

function keyOf({ state, left, came, seen }: Possible): string {
  const lefts = [...left].map(([change, parts]) => `${numberOf(change)}:${parts}:${came.get(change) ?? 0}`);
  return `${state} ${lefts} ${[...seen].map(numberOf).sort()}`;
}

function without(way: Possible, changes: readonly Change[]): Possible {
  const [left, came] = [new Map(way.left), new Map(way.came)];
  for (const change of changes) {
    left.delete(change);
    came.delete(change);
  }
  return { ...way, left, came };
}

function describe(answer: Answer, ways: readonly Possible[]): string {
  const states = [...new Set(ways.map(({ state }) => state.toString(2)))].sort();
  const under = [...new Set(ways.flatMap(({ left }) => [...left.keys()].map(({ told }) => told)))];
  return `${answer.account}, ${answer.table}: ${answer.told} (${Math.round(answer.begin)} to ${Math.round(answer.end)} ms) is true at no moment; possible at its end: ${states.slice(0, 16)}; under way or given up: ${under.join(', ') || 'nothing'}`;
}
