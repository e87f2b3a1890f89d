import { endpoints } from '../../catalog/breakdowns.ts';
import { catalog } from '../../catalog/catalog.ts';
import { read, type Transfer, transfer } from '../harness/http-client.ts';
import { median, runInTurn } from '../harness/measure.ts';
import { jsonEachRowRequest } from '../harness/requests.ts';
import { assertSameRows, linesOf, rowsOf } from '../harness/same-rows.ts';
import { neverAsked, type Outcome, openService, report, type Scenario } from '../harness/scenario.ts';

/** Every endpoint, for a day, a month and a year of a small and of a very large account. */
export const reports: Scenario = async (bench) => {
  const { address } = await bench.store(bench.events);
  const service = await openService(bench, address);
  const paths = endpoints(catalog)
    .map(({ path }) => path)
    .filter((path) => !(path in catalog.aliases));
  const outcomes: Outcome[] = [];
  try {
    for (const path of paths.filter((_, n) => !bench.quick || n % 4 === 0)) {
      for (const size of ['small', 'large'] as const) {
        for (const days of bench.quick ? [365] : [1, 30, 365]) {
          const what = `${path}, ${days === 1 ? '1 day' : `${days} days`}, ${size} account`;
          bench.progress(what);
          const asked = report(path, days, size);
          const rows = rowsOf(await read(service.request(asked)));
          assertSameRows(rows, linesOf(await read(jsonEachRowRequest(address, asked))), what);
          const transfers = { identity: [] as Transfer[], zstd: [] as Transfer[] };
          const side = (encoding: keyof typeof transfers) => ({
            name: `adtally, ${encoding}, first`,
            run: async () => {
              const done = await transfer(service.request(neverAsked(asked), encoding));
              transfers[encoding].push(done);
              return done.seconds;
            },
          });
          const again = {
            name: 'adtally, identity, again',
            run: async () => (await transfer(service.request(asked))).seconds,
          };
          const sides = await runInTurn([side('identity'), side('zstd'), again], bench.runs);
          const seconds = median(sides[0]?.samples ?? []);
          const bytes = transfers.identity[0]?.bytes ?? Number.NaN;
          outcomes.push({
            what,
            unit: 's',
            sides,
            facts: {
              rows: rows.length,
              first_byte_ms:
                1000 *
                median(transfers.identity.slice(-bench.runs).map(({ firstByteSeconds }) => firstByteSeconds)),
              rows_per_second: rows.length / seconds,
              mb_per_second: bytes / 1e6 / seconds,
              bytes,
              bytes_zstd: transfers.zstd[0]?.bytes ?? Number.NaN,
            },
          });
        }
      }
    }
    outcomes.push({
      what: 'memory of the service after all of them',
      unit: 'MB',
      sides: [{ name: 'adtally', samples: [service.peakMemoryMb()] }],
    });
    return outcomes;
  } finally {
    await service.stop();
  }
};
