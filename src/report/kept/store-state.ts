import { createHash } from 'node:crypto';
import { changesTable, rollupTable } from '../../../catalog/breakdowns.ts';
import type { Plan } from '../plan.ts';

/** A partition, or the names, as the store had them. */
interface Piece {
  readonly state: string;
  /** `yyyy-mm-dd`; a partition without days holds any. */
  readonly first: string;
  readonly last: string;
  /** When it came to be or last changed: a number that no other change has. */
  readonly change: number;
}

const anyDay = '1970-01-01';

/** What the store held at one moment, told by its metadata. */
export class StoreState {
  /** The numbers of the shards that told theirs; 0 on a single node. */
  readonly shards: ReadonlySet<number>;
  /** Whether one of them may have started since it was last asked for damaged parts. */
  readonly mayHaveRestarted: boolean;
  readonly #text: string;
  /** By table, then by partition; the names of all kinds are one table. */
  readonly #tables = new Map<string, Map<string, Piece>>();

  /** @param before the state that this one follows; what has not changed since keeps its number */
  constructor(answer: string, before: StoreState | undefined, nextChange: () => number) {
    this.#text = answer;
    const add = (table: string, key: string, piece: Omit<Piece, 'change'>) => {
      const old = before ? before.#tables.get(table)?.get(key) : undefined;
      const pieces = this.#tables.get(table) ?? new Map<string, Piece>();
      this.#tables.set(table, pieces);
      const same = old?.state === piece.state && old.first === piece.first && old.last === piece.last;
      if (!pieces.has(key)) pieces.set(key, { ...piece, change: same ? old.change : nextChange() });
    };
    const shards = new Set<number>();
    this.shards = shards;
    let mayHaveRestarted = false;
    for (const line of answer.split('\n')) {
      if (line === '') continue;
      const [table = '', partition, folder, state = '', names = '', first = '', last = '', shard, isYoung] =
        line.split('\t');
      shards.add(Number(shard));
      mayHaveRestarted ||= isYoung === '1';
      add(table, `${partition} ${folder}`, { state, first, last });
      add('names', names, { state: '', first: anyDay, last: anyDay });
    }
    this.mayHaveRestarted = mayHaveRestarted;
  }

  isSame(answer: string): boolean {
    return this.#text === answer;
  }

  /** Two states for which this is the same text give the same report. */
  ofReport(plan: Plan): string {
    return sourcesOf(plan)
      .map(({ table, days }) => this.#summary(table, days))
      .join(' ');
  }

  /** The same, but equal in every process: they number changes each in their own way. */
  digestOfReport(plan: Plan): string {
    const lines = sourcesOf(plan).flatMap(({ table, days }) =>
      [...(this.#tables.get(table) ?? [])].flatMap(([key, piece]) =>
        mayHold(piece, days) ? [`${table}\t${key}\t${piece.state}`] : [],
      ),
    );
    return createHash('sha256').update(lines.sort().join('\n')).digest('base64url');
  }

  /** Likewise of the unconfirmed days of an account. */
  ofUnconfirmedDays({ breakdown }: Plan): string {
    return `${this.#summary(rollupTable(breakdown.family, []))} ${this.#summary('confirmations')}`;
  }

  /** Every change has a higher number than all before, or takes a piece away: count and highest number tell them all. */
  #summary(table: string, days?: Plan['days']): string {
    let count = 0;
    let change = 0;
    for (const piece of this.#tables.get(table)?.values() ?? []) {
      if (!mayHold(piece, days)) continue;
      count++;
      if (piece.change > change) change = piece.change;
    }
    return `${count}.${change}`;
  }
}

function mayHold({ first, last }: Piece, days: Plan['days'] | undefined): boolean {
  return !days || last === anyDay || (first <= days.last && last >= days.first);
}

/** What a report is read from: its rollup, what tells unconfirmed days, and the names. */
function sourcesOf({
  breakdown,
  reads,
  days,
  compared,
  options,
  closed,
}: Plan): { table: string; days?: Plan['days'] }[] {
  // Closed rows stay as they are.
  if (closed) return [];
  const { family } = breakdown;
  const rollup = rollupTable(family, reads);
  const tables = new Set([rollup, rollupTable(family, [])]);
  return [
    ...[...tables].map((table) => ({ table, days })),
    ...(compared ? [{ table: rollup, days: compared.days }] : []),
    ...(options.changed_since === undefined ? [] : [{ table: changesTable(family) }]),
    { table: 'confirmations' },
    { table: 'names' },
  ];
}
