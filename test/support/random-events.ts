import { type EventLine, event } from './events.ts';
import { seededRandom } from './random.ts';

/** Events of every kind that a line can be, January to March 2026; the last ones add up to nothing. */
export function randomEvents(seed: number, count: number): EventLine[] {
  const random = seededRandom(seed);
  const below = (limit: number) => Math.floor(random() * limit);
  const one = <T>(...choices: readonly [T, ...T[]]): T => choices[below(choices.length)] ?? choices[0];
  const id = () => one('c1', 'c1', 'c10', 'c2', 'C1', 'é', '\u{ff5e}', '😀', ' c1');
  const detail = () => one('', 'c1', 'c2', 'x\u{ff5e}', 'x😀');
  const maybe = (fields: Partial<EventLine>) => one({}, fields);
  const money = () =>
    one(
      one('0', '0.5', '-0.000001', '0.000001', '999999999999.999999'),
      `${one('', '-')}${below(1000)}.${below(1_000_000)}`,
      `${one('', '-')}${below(10)}.${one('0', '00000', '12')}${below(9)}`,
    );
  const clock = () =>
    one(
      '00:00:00.000',
      '23:59:59.999',
      `${[below(24), below(60), below(60)].map(two).join(':')}.${100 + below(900)}`,
    );
  const two = (n: number) => `${n}`.padStart(2, '0');
  const made = Array.from({ length: count }, (_, n): EventLine => {
    const sides = one('both', 'both', 'advertiser', 'publisher');
    const day = `2026-${one('01-31', '02-01', '02-28', '03-01', `${two(1 + below(3))}-${two(1 + below(28))}`)}`;
    return {
      event_id: `random-${n}`,
      event_time: one(
        `${day}T${clock()}Z`,
        `${day}T${clock()}${one('+05:30', '-08:00')}`,
        `${day} ${clock()}`,
      ),
      event_type: one('ad_request', 'impression', 'impression', 'referral', 'conversion', 'revenue'),
      ...(sides !== 'publisher' && {
        advertiser_id: one('advertiser', 'both', 'both-2'),
        campaign_id: id(),
        ...maybe({ creative_id: detail() }),
      }),
      ...(sides !== 'advertiser' && {
        publisher_id: one('publisher', 'both', 'both-2'),
        ad_unit_id: id(),
        ...maybe({ site_id: detail() }),
      }),
      ...maybe({ device: one('', 'mobile', 'Mobile', 'tablet') }),
      ...maybe({ quantity: one(1 + below(500), 1 + below(500), 2 ** 32 - 1) }),
      ...maybe({ spend: money() }),
      ...maybe({ revenue: money() }),
      ...maybe({ confirmed: one(true, false) }),
      ...(n % 7 === 3 && { reason: n % 2 ? 'makegood' : 'invalid traffic' }),
    };
  });
  const nothing = (entity: string, amount: string) =>
    event({
      ...{ event_time: '2026-02-28T00:00:00Z', event_type: 'revenue', spend: amount, revenue: amount },
      ...{ advertiser_id: 'both', campaign_id: entity, publisher_id: 'both', ad_unit_id: entity },
    });
  return [...made, nothing('a', '7.000001'), nothing('a', '-7.000001'), nothing('b', '0')];
}
