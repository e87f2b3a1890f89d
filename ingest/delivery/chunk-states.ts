import type { DedupState } from './dedup-state.ts';

/** The first row whose facts all hold decides; a fact that a row does not name does not matter. */
type Table<Facts, Step> = readonly (readonly [when: Partial<Facts>, then: Step])[];

/** A fact that costs a query is unknown until a step asks for it. */
type Observed<Fact> = Fact | 'unknown';

/**
 * How a chunk is sent:
 * - `send`: for the first time.
 * - `send-again`: some of it may have arrived in an earlier attempt; ClickHouse leaves out what it has.
 * - `hold-back`: it is judged and kept until the loads that began before have ended. Then it is compared with what has arrived,
 *   and stored anew where they differ.
 */
export type SendStep = 'send' | 'send-again' | 'hold-back';

/** What the ledger says of a chunk when no load that claimed it earlier is running any more. */
export interface ClaimFacts {
  /** A load has recorded it as loaded. */
  readonly loaded: boolean;
  /** A load that claimed it earlier may have sent it. */
  readonly sent: boolean;
  /** An earlier load began to withdraw it; it may have sent some of it again, under a token nobody else knows. */
  readonly withdrawn: Observed<boolean>;
  /** An `unload` or a replacement of the load that claimed it last has ended since, and nothing of it is there. */
  readonly takenBack: Observed<boolean>;
  /** Whether deduplication can still be relied on for what was sent. */
  readonly dedup: Observed<DedupState>;
}

export const claimTable: Table<
  ClaimFacts,
  SendStep | 'skip' | 'look-up-withdrawn' | 'look-up-taken-back' | 'look-up-dedup'
> = [
  [{ loaded: true }, 'skip'],
  [{ sent: false }, 'send'],
  [{ withdrawn: 'unknown' }, 'look-up-withdrawn'],
  [{ withdrawn: true, takenBack: 'unknown' }, 'look-up-taken-back'],
  [{ withdrawn: true, takenBack: true }, 'send'],
  [{ withdrawn: true }, 'hold-back'],
  [{ dedup: 'unknown' }, 'look-up-dedup'],
  [{ dedup: 'unreliable' }, 'hold-back'],
  [{ dedup: 'reliable' }, 'send-again'],
];

/** What is known of a chunk when ClickHouse has acknowledged it. */
export interface SentFacts {
  readonly how: Exclude<SendStep, 'hold-back'>;
  /** Of all that was sent under this token, including an interruption of the latest attempt. */
  readonly dedup: DedupState;
  /** Its records are all accounted for: events, duplicates, rejected rows and those left out add up to them. */
  readonly balanced: boolean;
  /** All its events are in ClickHouse. */
  readonly whole: Observed<boolean>;
}

export const sentTable: Table<SentFacts, 'mark-loaded' | 'count-events' | 'hold-back' | 'fail'> = [
  // Some of it may be stored twice, or be lost.
  [{ dedup: 'unreliable' }, 'hold-back'],
  // Sent once and not interrupted, it can only be wrong because adtally is.
  [{ how: 'send', balanced: false }, 'fail'],
  // An earlier attempt that read the chunk by other rules.
  [{ balanced: false }, 'hold-back'],
  [{ how: 'send' }, 'mark-loaded'],
  [{ whole: 'unknown' }, 'count-events'],
  [{ whole: false }, 'hold-back'],
  [{ whole: true }, 'mark-loaded'],
];

/** What the ledger says of a chunk that was held back, when the loads that began before have ended. */
export interface MendFacts {
  readonly loaded: boolean;
  /** No other load has claimed the chunk since; one that did may have withdrawn it. */
  readonly lastClaimIsOwn: boolean;
  /** It may have been unloaded since, or replaced: then nobody wants it mended. */
  readonly takenBack: boolean;
}

export const mendTable: Table<MendFacts, 'skip' | 'mend' | 'fail'> = [
  [{ loaded: true }, 'skip'],
  [{ takenBack: true }, 'fail'],
  [{ lastClaimIsOwn: true }, 'mend'],
  [{ lastClaimIsOwn: false }, 'fail'],
];

/** The next step for a chunk. @throws when no row of the table holds */
export function nextStep<Facts extends object, Step>(table: Table<Facts, Step>, facts: Facts): Step {
  const holds = (when: Partial<Facts>) =>
    (Object.keys(when) as (keyof Facts)[]).every((name) => when[name] === facts[name]);
  const row = table.find(([when]) => holds(when));
  if (!row) throw new Error(`no step for a chunk with ${JSON.stringify(facts)}`);
  return row[1];
}
