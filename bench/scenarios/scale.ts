import { eventsForEveryKey } from '../data/network.ts';
import { read, transferSide } from '../harness/http-client.ts';
import { ratio, runInTurn } from '../harness/measure.ts';
import { rowsOf } from '../harness/same-rows.ts';
import {
  largest,
  neverAsked,
  type Outcome,
  openService,
  report,
  type Scenario,
  type Service,
  smallest,
} from '../harness/scenario.ts';

/** The same reports on stores with ten times and a hundred times the events, and the same keys. */
export const scale: Scenario = async (bench) => {
  const sizes = [bench.events / 100, bench.events / 10, bench.events].map(Math.round);
  const whereAllKeys = sizes.filter((events) => events >= eventsForEveryKey);
  const services: { events: number; service: Service }[] = [];
  try {
    for (const events of whereAllKeys.length > 1 ? whereAllKeys : sizes.slice(1)) {
      const { address } = await bench.store(events);
      services.push({ events, service: await openService(bench, address) });
    }
    const outcomes: Outcome[] = [];
    for (const asked of [
      smallest,
      report('/v1/campaigns', 90),
      report('/v1/ad_units/breakdowns/date', 365),
      largest,
    ]) {
      const what = `${asked.path}, ${asked === smallest ? 'smallest' : asked === largest ? 'largest' : asked.period.start}`;
      bench.progress(what);
      const counted = await Promise.all(
        services.map(async ({ service }) => rowsOf(await read(service.request(asked))).length),
      );
      const rows = Object.fromEntries(
        services.map(({ events }, n) => [`rows_at_${events}`, counted[n] ?? 0]),
      );
      const sides = await runInTurn(
        services
          .toReversed()
          .map(({ events, service }) =>
            transferSide(`adtally, ${events / 1e6} million events`, () => service.request(neverAsked(asked))),
          ),
        bench.runs,
      );
      const value = ratio(sides[0]?.samples ?? [], sides[1]?.samples ?? []).median;
      const same = new Set(counted).size === 1;
      outcomes.push({
        what,
        unit: 's',
        sides,
        facts: rows,
        ...(same && { goals: [{ goal: 'scale', value }] }),
      });
    }
    return outcomes;
  } finally {
    for (const { service } of services) await service.stop();
  }
};
