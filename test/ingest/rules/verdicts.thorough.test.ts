import { expect, test } from 'vitest';
import { useLoadedFiles } from '../../support/loaded-files.ts';
import { useStore } from '../../support/store.ts';

const { load, events } = useLoadedFiles(useStore());

const time = '2026-01-31T12:00:00Z';
const object = (fields: Readonly<Record<string, unknown>>) =>
  JSON.stringify({
    ...{ event_time: time, event_type: 'impression', advertiser_id: 'X', campaign_id: 'C' },
    ...fields,
  });
const spend = (value: string) => object({ spend: 'here' }).replace('"here"', value);

/** Odd lines, and whether each is an event. */
const odd: readonly (readonly [line: string, isEvent: boolean])[] = [
  [spend('007'), false],
  [spend('00012.5'), false],
  [spend('1.'), false],
  [spend('.5'), false],
  [spend('+1'), false],
  [spend('NaN'), false],
  [spend('1e400'), false],
  [spend('1e2'), true],
  [spend('-'), false],
  [object({ event_time: '2149-06-05T01:00:00+02:00' }), true],
  [object({ event_time: '1970-12-31T23:59:59-00:01' }), true],
  [object({ event_time: '2149-06-05T00:00:00Z' }), false],
  [`[${object({})}]`, false],
  [`${object({})};`, false],
  [`\ufeff${object({})}`, false],
  [object({}) + object({}), false],
  [object({}).replace('}', ',}'), false],
  [`${object({})},`, false],
  [object({ device: 'tv' }).replace('"tv"', '"t\\x76"'), false],
  [object({ device: 'tv' }).replace('"tv"', '"t\tv"'), false],
  [object({ device: 'tv' }).replace(',"device"', '\f,\f"device"'), false],
];

/** Lines that become events among those beside them; each has an id of its own, so that none was loaded before. */
async function verdicts(name: string, beside: readonly string[], chunkBytes: number): Promise<boolean[]> {
  const tagged = (line: string, id: string) => line.replace('{', `{"event_id":"${name} ${id}",`);
  const lines = odd.flatMap(([line], n) => [
    ...beside.map((each, at) => tagged(each, `beside ${n} ${at}`)),
    tagged(line, `odd ${n}`),
  ]);
  // The first line is another thing: there a byte order mark belongs to the file.
  const content = [tagged(object({}), 'first'), ...lines, ''];
  const loaded = await load(`${name}.ndjson`, content.join('\n'), { chunkBytes });
  expect(loaded.rows + loaded.rejectedRows).toBe(content.length - 1);
  const ids = new Set((await events(loaded)).map(({ event_id }) => event_id));
  return odd.map((_, n) => ids.has(`${name} odd ${n}`));
}

test('the verdict on a line does not depend on those beside it', async () => {
  const expected = odd.map(([, isEvent]) => isEvent);
  const good = object({});
  const bad = object({ event_type: 'click' });
  const found = {
    alone: await verdicts('alone', [], 1),
    together: await verdicts('together', [], 1 << 20),
    'beside good ones': await verdicts('good', [good, good], 1 << 20),
    'beside bad ones': await verdicts('bad', [bad, good, bad], 1 << 20),
  };
  for (const [how, isEvent] of Object.entries(found)) expect(isEvent, how).toEqual(expected);
});

test('"\\N" in quotes in CSV is nothing, alone and beside a bad row', async () => {
  const header = 'event_id,event_time,event_type,advertiser_id,campaign_id,device';
  const devices = [];
  for (const beside of ['', '\nbad,never,impression,X,C,']) {
    const content = `${header}\nodd${beside.length},${time},impression,X,C,"\\N"${beside}\n`;
    devices.push((await events(await load('n.csv', content))).map(({ device }) => device));
  }
  expect(devices).toEqual([['unknown'], ['unknown']]);
});
