import assert from 'node:assert/strict';
import { eventsForEveryKey, largestReportRows } from '../data/network.ts';
import { read } from '../harness/http-client.ts';
import { jsonEachRowRequest, statementRequest } from '../harness/requests.ts';
import { assertSameRows, linesOf, rowsOf } from '../harness/same-rows.ts';
import { largest, openService, type Scenario, smallest } from '../harness/scenario.ts';
import { keptAnswers } from './kept-answers.ts';
import { largeReports } from './large-reports.ts';
import { smallReports } from './small-reports.ts';

/** The cost of the HTTP service: its reports against the same SQL sent to ClickHouse directly. */
export const edge: Scenario = async (bench) => {
  const { address } = await bench.store(bench.events);
  const service = await openService(bench, address);
  try {
    for (const asked of [largest, smallest]) {
      const ours = rowsOf(await read(service.request(asked)));
      assertSameRows(ours, linesOf(await read(jsonEachRowRequest(address, asked))), asked.path);
      assertSameRows(ours, rowsOf(await read(statementRequest(address, asked))), asked.path);
      if (asked === largest && bench.events >= eventsForEveryKey)
        assert.equal(ours.length, largestReportRows);
    }
    return [
      ...(await largeReports(bench, service, address)),
      ...(await smallReports(bench, service, address)),
      ...(await keptAnswers(bench, service)),
    ];
  } finally {
    await service.stop();
  }
};
