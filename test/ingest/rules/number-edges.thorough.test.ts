import { describe, expect, test } from 'vitest';
import { useLoadedFiles } from '../../support/loaded-files.ts';
import { useMappedLoads } from '../../support/mapped-loads.ts';

const { db, loadText, inFile } = useMappedLoads();
const { load, events, rejects, writeByDuckDb } = useLoadedFiles(db);

const zeros = (count: number) => '0'.repeat(count);
/** What is written, and what it comes to; undefined where it is rejected. */
type Edges = readonly (readonly [written: string, value: string | undefined])[];

const money: Edges = [
  ['1e-6', '0.000001'],
  ['1e-7', undefined],
  ['1e-39', undefined],
  ['-1e-999', undefined],
  ['0e-39', '0'],
  [`0.${zeros(60)}`, '0'],
  [`0.${zeros(60)}1`, undefined],
  [`1.${zeros(43)}1`, undefined],
  [`1.5${zeros(70)}`, '1.5'],
  ['1.500000000000000000e1', '15'],
  ['-1.2345678901234567e-05', undefined],
  // With an exponent a number has up to 33 digits.
  [`15${zeros(39)}e-40`, undefined],
  ['0.0000010', '0.000001'],
  ['999999999999.999999', '999999999999.999999'],
  ['-999999999999.999999', '-999999999999.999999'],
  ['999999999999.9999990', '999999999999.999999'],
  ['999999999999.9999991', undefined],
  ['999999999999.9999999', undefined],
  ['1000000000000', undefined],
  ['-1e12', undefined],
  ['9.99999999999999999e11', '999999999999.999999'],
  [`1${zeros(75)}`, undefined],
  [`1${zeros(300)}`, undefined],
  ['1e999', undefined],
];

const counts: Edges = [
  ['999999999999999', '999999999999999'],
  ['999999999999999.0', '999999999999999'],
  ['999999999999999e0', '999999999999999'],
  ['1000000000000000', undefined],
  ['1e15', undefined],
  ['18446744073709551615', undefined],
  ['18446744073709551616', undefined],
  ['18446744073709551617', undefined],
  ['-1', undefined],
  ['-0', '0'],
  ['1e-39', undefined],
  [`5.${zeros(50)}`, '5'],
  [`5.${zeros(50)}1`, undefined],
  ['5e-1', undefined],
  ['50e-1', '5'],
];

const header = ['event_id', 'event_time', 'advertiser_id', 'campaign_id'];
const cells = (id: string) => [id, '2026-03-01', 'X', 'C'];

/** A file with a line for each, in which it stands in the field; in NDJSON as text or as a number. */
function written(format: string, field: string, values: Edges): string {
  const names = [...header, ...(field === 'impressions' ? [field] : ['impressions', field])];
  const lines = values.map(([value], n) => {
    const id = `${format}-${field}-${String(n).padStart(3, '0')}`;
    return [...cells(id), ...(field === 'impressions' ? [value] : ['1', value])];
  });
  if (!format.startsWith('ndjson')) {
    const separator = format === 'csv' ? ',' : '\t';
    return [names, ...lines].map((line) => `${line.join(separator)}\n`).join('');
  }
  const quote = (value: string, n: number) =>
    format === 'ndjson numbers' && n === names.length - 1 ? value : JSON.stringify(value);
  return lines
    .map((line) => `{${line.map((value, n) => `"${names[n]}":${quote(value, n)}`).join(',')}}\n`)
    .join('');
}

const found = async (name: string, content: string | undefined, field: 'spend' | 'impressions') => {
  const loaded = await load(name, content);
  const stored = new Map((await events(loaded)).map((event) => [event.event_id, event[field]]));
  return { stored, rejected: await rejects(loaded) };
};

describe.each([
  ['spend', money],
  ['impressions', counts],
] as const)(
  '%s at the edges of what can be kept is stored to the last digit or rejected',
  (field, values) => {
    test.each(['csv', 'tsv', 'ndjson'])('%s', async (format) => {
      const { stored, rejected } = await found(`e.${format}`, written(format, field, values), field);
      for (const [n, [value, expected]] of values.entries()) {
        expect(stored.get(`${format}-${field}-${String(n).padStart(3, '0')}`), value).toBe(expected);
      }
      const lost = values.filter(([, expected]) => expected === undefined).length;
      expect(rejected.map(({ fields }) => fields)).toEqual(Array.from({ length: lost }, () => [field]));
    });

    test('NDJSON, as numbers without quotes', async () => {
      const format = 'ndjson numbers';
      const { stored, rejected } = await found('n.ndjson', written(format, field, values), field);
      const kept = values.filter(([value, expected], n) => {
        const found = stored.get(`${format}-${field}-${String(n).padStart(3, '0')}`);
        // It may be rejected; and what no double tells apart from a short number is that number, as everywhere in JSON.
        const short = Math.abs(Number(value)) < 10 && Number(found) === Number(value);
        if (!short) expect([expected, undefined], value).toContain(found);
        return found !== undefined;
      });
      expect(kept.length + rejected.length).toBe(values.length);
      const largest = field === 'spend' ? '999999999999.999999' : '999999999999999';
      expect(kept.map(([value]) => value)).toContain(largest);
    });

    test('Parquet, as text', async () => {
      const rows = values.map(
        ([value], n) =>
          `('p-${String(n).padStart(3, '0')}', '2026-03-01', 'X', 'C', '${field === 'spend' ? '1' : value}'${field === 'spend' ? `, '${value}'` : ''})`,
      );
      const names = [...header, 'impressions', ...(field === 'spend' ? ['spend'] : [])];
      await writeByDuckDb('e.parquet', `SELECT * FROM (VALUES ${rows.join(', ')}) AS t(${names.join(', ')})`);
      const { stored } = await found('e.parquet', undefined, field);
      for (const [n, [value, expected]] of values.entries()) {
        expect(stored.get(`p-${String(n).padStart(3, '0')}`), value).toBe(expected);
      }
    });
  },
);

test('numbers of Parquet at the edges of their types', async () => {
  const types: readonly (readonly [type: string, spend: string, value: string | undefined])[] = [
    ['DECIMAL(18, 6)', '999999999999.999999', '999999999999.999999'],
    ['DECIMAL(38, 6)', '1000000000000.000000', undefined],
    ['DECIMAL(38, 6)', '-99999999999999999999999999999999.999999', undefined],
    ['DECIMAL(38, 38)', '0.00000000000000000000000000000000000001', undefined],
    ['DECIMAL(38, 10)', '1.0000010000', '1.000001'],
    ['DOUBLE', '1e-39', undefined],
    ['DOUBLE', '1e300', undefined],
    ['BIGINT', '9223372036854775807', undefined],
    ['BIGINT', '-999999999999', '-999999999999'],
    ['UBIGINT', '18446744073709551615', undefined],
  ];
  for (const [n, [type, spend, value]] of types.entries()) {
    const sql = `SELECT 't${n}' AS event_id, '2026-03-01' AS event_time, 'X' AS advertiser_id, 'C' AS campaign_id, 1 AS impressions`;
    await writeByDuckDb('t.parquet', `${sql}, CAST('${spend}' AS ${type}) AS spend`);
    expect((await found('t.parquet', undefined, 'spend')).stored.get(`t${n}`), `${type} ${spend}`).toBe(
      value,
    );
  }
  const whole = ['-1', '-9223372036854775808', '9223372036854775807', '1000000000000000', '999999999999999'];
  const rows = whole.map((count, n) => `('w${n}', '2026-03-01', 'X', 'C', CAST(${count} AS BIGINT))`);
  await writeByDuckDb(
    'w.parquet',
    `SELECT * FROM (VALUES ${rows.join(', ')}) AS t(${[...header, 'impressions'].join(', ')})`,
  );
  const { stored } = await found('w.parquet', undefined, 'impressions');
  expect([...stored]).toEqual([['w4', '999999999999999']]);
});

describe('numbers of an expression', () => {
  const rows = [
    '0.000000000001',
    '1e-12',
    '1e-13',
    '0.0000000000001',
    '1e-39',
    '2.5',
    '999999999999999',
    '1e15',
  ];
  const text = `Day,n\n${rows.map((n) => `2026-03-01,${n}\n`).join('')}`;
  const expressions = { creative_id: "if({n} != 0, 'more', 'zero')", impressions: '0' };
  const reason = 'creative_id must be computed from numbers, and {n} is no number, not "zero"';

  test('that have more than 12 places are no numbers, and not zero', async () => {
    const flags = { ...(await inFile({ expressions, ignore_unknown: true })), map: ['event_time=Day'] };
    const { events: kept, rejected } = await loadText(flags, text, 'creative_id');
    expect(kept.flat()).toEqual(['more', 'more', 'more', 'more']);
    expect(rejected).toEqual([4, 5, 6, 9].map((line) => `${line} ${reason}`));
  });

  test('a condition leaves none out because of digits that it does not see', async () => {
    const flags = { map: ['event_time=Day'], set: ['impressions=1'], where: '{n} != 0', ignoreUnknown: true };
    const { rejected, leftOut } = await loadText(flags, `${text}2026-03-01,3\n`, '1');
    expect({ rejected: rejected.length, leftOut }).toEqual({ rejected: 4, leftOut: 0 });
  });

  test('are cut when amounts are rounded', async () => {
    const mapping = {
      expressions: { ...expressions, spend: '{n} * 2' },
      ignore_unknown: true,
      round_money: true,
    };
    const flags = { ...(await inFile(mapping)), map: ['event_time=Day'] };
    const noise = 'Day,n\n2026-03-01,0.30000000000000004\n2026-03-01,1e-13\n';
    const { events: kept } = await loadText(flags, noise, 'toString(spend), creative_id');
    expect(kept).toEqual([
      ['0', 'zero'],
      ['0.6', 'more'],
    ]);
  });
});
