import { describe, expect, test } from 'vitest';
import {
  type ClaimFacts,
  claimTable,
  nextStep,
  type RepairFacts,
  repairTable,
  type SentFacts,
  sentTable,
} from '../../../ingest/delivery/chunk-states.ts';

const dedups = ['reliable', 'may-lose-rows', 'expired'] as const;
const booleans = [true, false];

describe('a chunk that is claimed', () => {
  const sent: ClaimFacts = { loaded: false, sent: true, withdrawn: false, dedup: 'reliable' };
  test.each<[string, Partial<ClaimFacts>, string]>([
    ['that a load has loaded is skipped', { loaded: true, withdrawn: 'unknown', dedup: 'unknown' }, 'skip'],
    ['that nobody has sent is sent', { sent: false, withdrawn: 'unknown', dedup: 'unknown' }, 'send'],
    [
      'that was sent may have been withdrawn',
      { withdrawn: 'unknown', dedup: 'unknown' },
      'look-up-withdrawn',
    ],
    [
      'that was withdrawn is withdrawn again: who did so used a token that nobody knows',
      { withdrawn: true, dedup: 'unknown' },
      'withdraw-and-send',
    ],
    ['that was sent and not withdrawn may have been forgotten', { dedup: 'unknown' }, 'look-up-dedup'],
    ['that ClickHouse has forgotten is withdrawn', { dedup: 'expired' }, 'withdraw-and-send'],
    ['that a killed server may have lost rows of is sent again', { dedup: 'may-lose-rows' }, 'send-again'],
    ['that ClickHouse remembers is sent again', { dedup: 'reliable' }, 'send-again'],
  ])('%s', (_, facts, step) => expect(nextStep(claimTable, { ...sent, ...facts })).toBe(step));
});

describe('a chunk that ClickHouse has acknowledged', () => {
  const acknowledged: SentFacts = { how: 'send', dedup: 'reliable', balanced: true, whole: 'unknown' };
  test.each<[string, Partial<SentFacts>, string]>([
    ['and may have stored twice is withdrawn', { dedup: 'expired' }, 'withdraw-and-send'],
    ['for the first time is loaded', {}, 'mark-loaded'],
    [
      'under a new token needs its rollups checked, which may hold what was withdrawn',
      { how: 'withdraw-and-send' },
      'repair-rollups',
    ],
    ['again may have been read by other rules before', { how: 'send-again' }, 'count-events'],
    ['again is loaded when all its events are there', { how: 'send-again', whole: true }, 'mark-loaded'],
    ['again is withdrawn when events are missing', { how: 'send-again', whole: false }, 'withdraw-and-send'],
    [
      'again is withdrawn when its records are not accounted for',
      { how: 'send-again', balanced: false },
      'withdraw-and-send',
    ],
    ['once and for all fails when its records are not accounted for', { balanced: false }, 'fail'],
    [
      'under a new token fails when its records are not accounted for',
      { how: 'withdraw-and-send', balanced: false },
      'fail',
    ],
    ['by a server that was killed is counted', { dedup: 'may-lose-rows' }, 'count-events'],
    [
      'by a server that was killed needs its rollups checked when all its events are there',
      { dedup: 'may-lose-rows', whole: true },
      'repair-rollups',
    ],
    [
      'by a server that was killed is withdrawn when events are missing',
      { dedup: 'may-lose-rows', whole: false },
      'withdraw-and-send',
    ],
    [
      'by a server that was killed is withdrawn when its records are not accounted for',
      { dedup: 'may-lose-rows', balanced: false },
      'withdraw-and-send',
    ],
  ])('%s', (_, facts, step) => expect(nextStep(sentTable, { ...acknowledged, ...facts })).toBe(step));

  const hows = ['send', 'send-again', 'withdraw-and-send'] as const;
  const all = hows.flatMap((how) =>
    dedups.flatMap((dedup) => booleans.map((balanced) => ({ how, dedup, balanced }))),
  );

  test.each(all)('is seen to, whatever is known: $how, $dedup, balanced $balanced', (facts) => {
    const step = nextStep(sentTable, { ...facts, whole: 'unknown' });
    // What is counted is decided by the count, and never loaded where records are missing.
    if (!facts.balanced) expect(['fail', 'withdraw-and-send']).toContain(step);
    for (const whole of booleans) {
      const counted = nextStep(sentTable, { ...facts, whole });
      if (step === 'count-events') expect(counted === 'withdraw-and-send').toBe(!whole);
      else expect(counted).toBe(step);
    }
  });

  test.each(all)(
    'is loaded without a look at the rollups only if all was remembered: $how, $dedup',
    (facts) => {
      for (const whole of [...booleans, 'unknown' as const]) {
        if (nextStep(sentTable, { ...facts, whole }) !== 'mark-loaded') continue;
        expect(facts).toMatchObject({ dedup: 'reliable' });
        expect(facts.how).not.toBe('withdraw-and-send');
      }
    },
  );
});

describe('a chunk whose rollups are to be checked', () => {
  test.each<[string, RepairFacts, string]>([
    ['that another load has completed is left alone', { loaded: true, lastClaimIsOwn: false }, 'skip'],
    ['that is loaded is left alone', { loaded: true, lastClaimIsOwn: true }, 'skip'],
    ['that nobody has claimed since is repaired', { loaded: false, lastClaimIsOwn: true }, 'repair'],
    [
      'that another load has taken over and not completed fails the load',
      { loaded: false, lastClaimIsOwn: false },
      'fail',
    ],
  ])('%s', (_, facts, step) => expect(nextStep(repairTable, facts)).toBe(step));
});

test('every row of the tables decides something', () => {
  const observed = [...booleans, 'unknown' as const];
  const claims = booleans.flatMap((loaded) =>
    booleans.flatMap((sent) =>
      observed.flatMap((withdrawn) =>
        [...dedups, 'unknown' as const].map((dedup) => ({ loaded, sent, withdrawn, dedup })),
      ),
    ),
  );
  for (const [, step] of claimTable) {
    expect(claims.map((facts) => nextStep(claimTable, facts))).toContain(step);
  }
  expect(() =>
    nextStep(claimTable.slice(0, 1), { loaded: false, sent: true, withdrawn: true, dedup: 'expired' }),
  ).toThrow(/no step for a chunk/);
});
