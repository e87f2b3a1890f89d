import { describe, expect, test } from 'vitest';
import {
  type ClaimFacts,
  claimTable,
  type MendFacts,
  mendTable,
  nextStep,
  type SentFacts,
  sentTable,
} from '../../../ingest/delivery/chunk-states.ts';

const dedups = ['reliable', 'unreliable'] as const;
const booleans = [true, false];

describe('a chunk that is claimed', () => {
  const sent: ClaimFacts = {
    loaded: false,
    sent: true,
    withdrawn: false,
    takenBack: 'unknown',
    dedup: 'reliable',
  };
  test.each<[string, Partial<ClaimFacts>, string]>([
    ['that a load has loaded is skipped', { loaded: true, withdrawn: 'unknown', dedup: 'unknown' }, 'skip'],
    ['that nobody has sent is sent', { sent: false, withdrawn: 'unknown', dedup: 'unknown' }, 'send'],
    [
      'that was sent may have been withdrawn',
      { withdrawn: 'unknown', dedup: 'unknown' },
      'look-up-withdrawn',
    ],
    [
      'that was withdrawn may be so because it was unloaded',
      { withdrawn: true, dedup: 'unknown' },
      'look-up-taken-back',
    ],
    ['that was unloaded is sent as a new one', { withdrawn: true, takenBack: true }, 'send'],
    [
      'that was withdrawn otherwise is held back: who did so used a token that nobody knows',
      { withdrawn: true, takenBack: false, dedup: 'unknown' },
      'hold-back',
    ],
    ['that was sent and not withdrawn may have been forgotten', { dedup: 'unknown' }, 'look-up-dedup'],
    ['that ClickHouse may have forgotten, or lost, is held back', { dedup: 'unreliable' }, 'hold-back'],
    ['that ClickHouse remembers is sent again', { dedup: 'reliable' }, 'send-again'],
  ])('%s', (_, facts, step) => expect(nextStep(claimTable, { ...sent, ...facts })).toBe(step));
});

describe('a chunk that ClickHouse has acknowledged', () => {
  const acknowledged: SentFacts = { how: 'send', dedup: 'reliable', balanced: true, whole: 'unknown' };
  test.each<[string, Partial<SentFacts>, string]>([
    ['and may have stored twice, or have lost, is held back', { dedup: 'unreliable' }, 'hold-back'],
    ['for the first time is loaded', {}, 'mark-loaded'],
    ['again may have been read by other rules before', { how: 'send-again' }, 'count-events'],
    ['again is loaded when all its events are there', { how: 'send-again', whole: true }, 'mark-loaded'],
    ['again is held back when events are missing', { how: 'send-again', whole: false }, 'hold-back'],
    [
      'again is held back when its records are not accounted for',
      { how: 'send-again', balanced: false },
      'hold-back',
    ],
    ['once and for all fails when its records are not accounted for', { balanced: false }, 'fail'],
    [
      'by a server that was killed is held back when its records are not accounted for',
      { dedup: 'unreliable', balanced: false },
      'hold-back',
    ],
  ])('%s', (_, facts, step) => expect(nextStep(sentTable, { ...acknowledged, ...facts })).toBe(step));

  const hows = ['send', 'send-again'] as const;
  const all = hows.flatMap((how) =>
    dedups.flatMap((dedup) => booleans.map((balanced) => ({ how, dedup, balanced }))),
  );

  test.each(all)('is seen to, whatever is known: $how, $dedup, balanced $balanced', (facts) => {
    const step = nextStep(sentTable, { ...facts, whole: 'unknown' });
    // What is counted is decided by the count, and never loaded where records are missing.
    if (!facts.balanced) expect(['fail', 'hold-back']).toContain(step);
    for (const whole of booleans) {
      const counted = nextStep(sentTable, { ...facts, whole });
      if (step === 'count-events') expect(counted === 'hold-back').toBe(!whole);
      else expect(counted).toBe(step);
    }
  });

  test.each(all)('is loaded as it is only if all was remembered: $how, $dedup', (facts) => {
    for (const whole of [...booleans, 'unknown' as const]) {
      if (nextStep(sentTable, { ...facts, whole }) !== 'mark-loaded') continue;
      expect(facts).toMatchObject({ dedup: 'reliable' });
    }
  });
});

describe('a chunk that was held back', () => {
  test.each<[string, MendFacts, string]>([
    [
      'that another load has completed is left alone',
      { loaded: true, lastClaimIsOwn: false, takenBack: false },
      'skip',
    ],
    ['that is loaded is left alone', { loaded: true, lastClaimIsOwn: true, takenBack: false }, 'skip'],
    [
      'that was unloaded or replaced meanwhile fails the load',
      { loaded: false, lastClaimIsOwn: true, takenBack: true },
      'fail',
    ],
    [
      'that nobody has claimed since is mended',
      { loaded: false, lastClaimIsOwn: true, takenBack: false },
      'mend',
    ],
    [
      'that another load has taken over and not completed fails the load',
      { loaded: false, lastClaimIsOwn: false, takenBack: false },
      'fail',
    ],
  ])('%s', (_, facts, step) => expect(nextStep(mendTable, facts)).toBe(step));
});

test('every row of the tables decides something', () => {
  const observed = [...booleans, 'unknown' as const];
  const claims = booleans.flatMap((loaded) =>
    booleans.flatMap((sent) =>
      observed.flatMap((withdrawn) =>
        observed.flatMap((takenBack) =>
          [...dedups, 'unknown' as const].map((dedup) => ({ loaded, sent, withdrawn, takenBack, dedup })),
        ),
      ),
    ),
  );
  for (const [, step] of claimTable) {
    expect(claims.map((facts) => nextStep(claimTable, facts))).toContain(step);
  }
  expect(() =>
    nextStep(claimTable.slice(0, 1), {
      loaded: false,
      sent: true,
      withdrawn: true,
      takenBack: false,
      dedup: 'unreliable',
    }),
  ).toThrow(/no step for a chunk/);
});
