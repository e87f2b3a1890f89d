import { readFile } from 'node:fs/promises';
import { expect, test } from 'vitest';
import { pagesWithFigures, readRecord, withFigures, withRun } from '../../bench/report/record.ts';

test.each(Object.entries(pagesWithFigures))(
  'the figures of %s are those of the record',
  async (name, figures) => {
    const page = await readFile(new URL(`../../${name}`, import.meta.url), 'utf8');
    expect(page).toBe(withFigures(page, figures(await readRecord())));
  },
);

test('a run of one scenario leaves the record of the others', async () => {
  const [first, ...others] = await readRecord();
  if (!first) throw new Error('the record is empty');
  const [again, ...kept] = first.scenarios;
  if (!again) throw new Error('a run without scenarios is in the record');
  const run = { ...first, commit: 'later', scenarios: [again] };
  const left = kept.length > 0 ? [{ ...first, scenarios: kept }] : [];
  expect(withRun([first, ...others], run)).toEqual([run, ...left, ...others]);
  expect(withRun([run], run)).toEqual([run]);
});

test('a page without a place for figures is refused', () => {
  expect(() => withFigures('# Page\n', 'figures')).toThrow('no place for figures');
});
