import { buffer } from 'node:stream/consumers';
import { describe, expect, test } from 'vitest';
import { defaultMapping } from '../../../ingest/event/mapping.ts';
import { mappedReading } from '../../../ingest/event/reading.ts';
import { ndjson } from '../../../ingest/formats/ndjson.ts';
import { heldInput } from '../../../ingest/input/held-input.ts';
import { firstObject, recordsOfArray } from '../../../ingest/input/json-records.ts';
import { testSeed as seed, seededRandom } from '../../support/random.ts';

async function* inPieces(text: string, pieceBytes: number): AsyncGenerator<Buffer> {
  const content = Buffer.from(text);
  for (let at = 0; at < content.length; at += pieceBytes) {
    yield Buffer.from(content.subarray(at, at + pieceBytes));
  }
}

/** The lines of a text, which are the same however it is cut. */
async function linesOf(text: string, path: readonly string[] = []): Promise<string[]> {
  const read = async (pieceBytes: number) =>
    (await buffer(recordsOfArray(inPieces(text, pieceBytes), path))).toString();
  const whole = await read(1 << 20);
  for (const pieceBytes of [1, 2, 3, 7, 64]) expect(await read(pieceBytes)).toBe(whole);
  if (whole === '') return [];
  expect(whole.endsWith('\n')).toBe(true);
  return whole.slice(0, -1).split('\n');
}

const refusal = async (text: string, path: readonly string[] = []) => {
  const messages = new Set<string>();
  for (const pieceBytes of [1 << 20, 1, 3]) {
    const outcome = buffer(recordsOfArray(inPieces(text, pieceBytes), path)).then(
      () => 'nothing',
      (error: Error) => error.message,
    );
    messages.add(await outcome);
  }
  return [...messages].join(' | ');
};

/** Any value that JSON has, and text that looks like its structure. */
function randomValue(random: () => number, depth: number): unknown {
  const below = (limit: number) => Math.floor(random() * limit);
  const texts = ['', 'a,b', '[{"x":1},', '}]', '\\', '"', '\\"', 'ü', '夏', '😀', 'line\nend', '\t', ']\\'];
  const kind = below(depth > 0 ? 6 : 4);
  if (kind === 0) return texts[below(texts.length)];
  if (kind === 1) return [0, -1.5e9, 12345678.9][below(3)];
  if (kind === 2) return [true, false, null][below(3)];
  if (kind === 3) return texts.slice(0, below(texts.length)).join('');
  const values = Array.from({ length: below(4) }, () => randomValue(random, depth - 1));
  return kind === 4 ? values : Object.fromEntries(values.map((value, n) => [`${texts[n * 3]}${n}`, value]));
}

test(`any array has its elements as lines, however it is written and cut (seed ${seed})`, async () => {
  const random = seededRandom(seed);
  for (let round = 0; round < 60; round++) {
    const values = Array.from({ length: Math.floor(random() * 6) }, () => randomValue(random, 4));
    for (const indent of [undefined, 1, '\t']) {
      const text = JSON.stringify(values, null, indent);
      expect((await linesOf(text)).map((line) => JSON.parse(line))).toEqual(values);
      const answer = JSON.stringify(
        { paging: { data: [1] }, report: { other: [{}], rows: values }, x: '[' },
        null,
        indent,
      );
      expect((await linesOf(answer, ['report', 'rows'])).map((line) => JSON.parse(line))).toEqual(values);
    }
  }
});

test('nothing, an empty array and blanks are no records', async () => {
  for (const text of ['', ' \n', '[]', '[ \n\t]\n', '\n [\r\n] ']) expect(await linesOf(text)).toEqual([]);
  expect(await linesOf('{"data":[]}', ['data'])).toEqual([]);
});

test('elements that are no records keep their place, for the judge to see', async () => {
  const text = '[{"a":1},7,"x",null,[{"b":[2]}],nonsense,{"c":3}{"d":4},\n{"e":\n5}]';
  expect(await linesOf(text)).toEqual([
    ...['{"a":1}', '7', '"x"', 'null', '[{"b":[2]}]', 'nonsense', '{"c":3}{"d":4}', '\t{"e":\t5}'],
  ]);
});

test('a line end in a string, which JSON forbids, stays forbidden', async () => {
  expect(await linesOf('[{"a":"x\ny"},{"b":"\\\n"}]')).toEqual(['{"a":"x\ty"}', '{"b":"\\\t"}']);
});

test('a record nested 100,000 deep is a line', async () => {
  const deep = `${'{"a":['.repeat(100_000)}${']}'.repeat(100_000)}`;
  const cut = inPieces(`[${deep},{"b":1}]`, 64 << 10);
  expect((await buffer(recordsOfArray(cut, []))).toString() === `${deep}\n{"b":1}\n`).toBe(true);
});

test('of a line of very many members few names are kept', () => {
  const { names, arrays, depth } = firstObject(Buffer.from(`{${'"a":[],'.repeat(100_000)}`));
  expect(depth).toBe(1);
  expect(names.length + arrays.length).toBeLessThan(150_000);
});

test('a column that is missing is not looked for among the members of a record of megabytes', async () => {
  const spend = { kind: 'column', text: 'cst', place: '--map spend' } as const;
  const messageFor = async (text: string) => {
    const input = heldInput('a.ndjson', ['ndjson'], Buffer.from(`{"cost":1,"reason":"${text}"}\n`));
    const reading = mappedReading(input.name, { ...defaultMapping, sources: new Map([['spend', spend]]) });
    const opened = await ndjson.open(input, { reading, onBytes: () => {} });
    return opened
      .chunks(async () => [])
      .next()
      .catch(({ message }: Error) => message);
  };
  expect(await messageFor('')).toMatch(/^--map spend: no record of a.ndjson has cst; did you mean cost\?/);
  expect(await messageFor('x'.repeat(70_000))).toMatch(/has cst\. If a file may be without it/);
});

describe('what is not whole is refused', () => {
  const early = 'the JSON ends too early';
  test.each([
    ['[', early],
    ['[{"a":1}', `${early}, behind or within record 1: it is truncated`],
    ['[{"a":1},', `${early}, behind or within record 1`],
    ['[{"a":1},{"b":"]', `${early}, behind or within record 2`],
    ['[{"a":1}]]', 'more follows behind the end of the JSON, after record 1'],
    ['[{"a":1}][{"a":1}]', 'more follows'],
    ['[{"a":1}] x', 'more follows'],
    ['[{"a":1},]', 'nothing stands behind the comma after record 1'],
    ['[{"a":1},,{}]', 'nothing stands behind the comma after record 1'],
    ['[,{}]', 'nothing stands behind the comma after record 0'],
    ['[{"a":1}}]', 'a bracket that nothing opened closes record 1'],
  ])('%s', async (text, message) => {
    expect(await refusal(text)).toContain(message);
    expect(await refusal(text)).not.toContain('|');
  });

  test.each([
    ['{"data":[{"a":1}]', `${early}, behind or within record 1`],
    ['{"da', early],
    ['{"paging":{"data":[]},"rows":[{"a":1}]}', 'there is no data; the members there are paging, rows'],
    ['{"\\u001b[2J":[]}', 'there is no data; the members there are "\\u001b[2J"'],
    ['{"data":{"rows":[]}}', 'data is no array; the members there are data'],
    ['{"data":"[]"}', 'data is no array'],
    ['[{"data":[{"a":1}]}', early],
    ['[{"data":[{"a":1}]}]]', 'more follows'],
    ['[{"data":[{"a":1}]}]{"data":[]}', 'more follows'],
    ['[{"data":[]},7]', 'an element of the array is no JSON object'],
    ['[{"data":[]}{"data":[]}]', 'more follows'],
    ['[{"data":[]},,{"data":[]}]', 'an element of the array is no JSON object'],
    ['[{"data":[]},]', 'an element of the array is no JSON object'],
    ['[,{"data":[]}]', 'an element of the array is no JSON object'],
    ['[7]', 'an element of the array is no JSON object'],
    ['[[{"data":[]}]]', 'an element of the array is no JSON object'],
    ['[{"a":1}]', 'If the elements of the array are the records, leave it out'],
    ['7', 'the file is no JSON object'],
    ['{"data":[]} x', 'more follows'],
    ['{"data":[{"a":1}],"next":{"data":1},"data":[]}', 'records data: data appears twice in one object'],
    ['{"data":[]}{"data":[],"d\\u0061ta":null}', 'data appears twice in one object'],
  ])('%s with --records data', async (text, message) => {
    expect(await refusal(text, ['data'])).toContain(message);
    expect(await refusal(text, ['data'])).not.toContain('|');
  });
});

test.each([
  ['{"report":{"x":{"rows":[]},"rows":[{"a":1}],"x":"rows","rows":[]}}', 'report.rows appears twice'],
  ['{"report":{"rows":[{"a":1}]},"x":[{"report":{}}],"report":{}}', 'report appears twice'],
])('%s with --records report.rows', async (text, message) => {
  expect(await refusal(text, ['report', 'rows'])).toContain(`records report.rows: ${message} in one object`);
  expect(await refusal(text, ['report', 'rows'])).not.toContain('|');
});

test('the same name elsewhere is another member', async () => {
  const text =
    '{"rows":[],"report":{"rows":[{"a":1}],"report":[],"x":{"rows":[1]}},"x":{"report":0},"rows":2}';
  expect(await linesOf(`${text}${text}`, ['report', 'rows'])).toEqual(['{"a":1}', '{"a":1}']);
});

test('answers one after another are pages of one file', async () => {
  const pages = '{"data":[{"a":1},{"a":2}],"next":"[x"}\n{"next":null,"d\\u0061ta":[{"a":3}]}\n';
  expect(await linesOf(pages, ['data'])).toEqual(['{"a":1}', '{"a":2}', '{"a":3}']);
});

test('answers in an array are pages, too', async () => {
  const pages = '[{"data":[{"a":1},{"a":2}],"mask":"data,a"},\n {"data":[]},{"data":[{"a":3}]}]\n';
  expect(await linesOf(pages, ['data'])).toEqual(['{"a":1}', '{"a":2}', '{"a":3}']);
  expect(await linesOf('[]', ['data'])).toEqual([]);
});
