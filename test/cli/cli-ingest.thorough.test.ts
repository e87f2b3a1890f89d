import { appendFile } from 'node:fs/promises';
import { expect, test } from 'vitest';
import { type EventLine, ndjson } from '../support/events.ts';
import { csv, useHandedOver } from '../support/handed-over.ts';
import { useStore } from '../support/store.ts';

const { file, loaded, counted, events } = useHandedOver(useStore());

test.each(['csv', 'ndjson'])('%s cut into other chunks the second time changes nothing', async (kind) => {
  const lines = events(60);
  const path = await file(`e.${kind}`, kind === 'csv' ? csv(lines) : ndjson(lines));
  expect(await loaded([path, '--chunk-bytes', '700'])).toMatchObject({ rows: 60 });
  for (const bytes of ['100', '900', '5000', '100000']) {
    expect(await loaded([path, '--chunk-bytes', bytes])).toMatchObject({ rows: 0, repeated_rows: 60 });
  }
  expect(await counted()).toBe(60);
});

test.each(['csv', 'ndjson'])('of a %s that has grown only what is new is counted', async (kind) => {
  const rows = (lines: EventLine[]) => (kind === 'csv' ? csv(lines).replace(/^.*\n/, '') : ndjson(lines));
  const path = await file(`e.${kind}`, `${kind === 'csv' ? csv([]) : ''}${rows(events(10)).trimEnd()}`);
  expect(await loaded([path, '--chunk-bytes', '700'])).toMatchObject({ rows: 10 });
  for (const more of [1, 7]) {
    await appendFile(path, `\n${rows(events(more)).trimEnd()}`);
    expect((await loaded([path, '--chunk-bytes', '2000'])).rows).toBe(more);
  }
  expect(await counted()).toBe(18);
});
