import { expect, test } from 'vitest';
import { catalog } from '../../../catalog/catalog.ts';
import { checkSchema } from '../../../clickhouse/consistency/check-schema.ts';
import { currencies } from '../../../src/accounts/own-settings.ts';
import { useCommandRunners } from '../../support/command-runners.ts';
import { event, load } from '../../support/events.ts';
import { environmentOf } from '../../support/process.ts';
import { readers } from '../../support/readers.ts';
import { useService } from '../../support/service.ts';
import { useStore } from '../../support/store.ts';

const db = useStore();
const service = useService(db);
const runCommand = useCommandRunners();
const range = { start_time: '2026-03-01', end_time: '2026-03-31' };
const path = '/v1/campaigns/breakdowns/date';
const xlsx = 'application/vnd.openxmlformats-officedocument.spreadsheetml.sheet';

test('the currency is said beside amounts, converts none, and is forgotten again', async () => {
  await load(db.store, [
    event({ event_id: '1', event_time: '2026-03-05T08:00:00Z', advertiser_id: 'acme', spend: '12.5' }),
  ]);
  const answer = (accept: string) =>
    service.post(path, 'acme', { ...range, compare_to: 'previous_period' }, { accept });
  const json = async () =>
    (await (await answer('application/json')).text()).replace(/"last_update_time":"[^"]+"/, '');
  const csv = async () => (await answer('text/csv')).text();
  const head = async () =>
    (await readers.xlsx(Buffer.from(await (await answer(xlsx)).arrayBuffer()))).columns;
  const said = async () => (await answer('text/csv')).headers.get('adtally-currency');
  const headers = { authorization: `Bearer ${await service.token('acme')}` };
  const exported = (method: string) =>
    Promise.all(
      ['xlsx', 'csv'].map(async (format) => {
        const address = `${service.url}/v1/export/campaigns/date.${format}?start_time=2026-03-01&end_time=2026-03-31`;
        const response = await fetch(address, { method, headers });
        await response.arrayBuffer();
        return { currency: response.headers.get('adtally-currency'), tag: response.headers.get('etag') };
      }),
    );
  const before = [await json(), await csv()];
  const plain = await head();
  const without = await exported('GET');
  expect(without.map(({ currency }) => currency)).toEqual([null, null]);
  expect(plain.filter((name) => name.includes('('))).toEqual([]);

  await currencies.set(db.store, 'acme', 'EUR');
  await expect.poll(said, { timeout: 5_000, interval: 200 }).toBe('EUR');
  expect((await answer('application/json')).headers.get('adtally-currency')).toBe('EUR');
  expect([await json(), await csv()]).toEqual(before);
  const money = /^(cpa|cpc|cpm|spent)(_|$)/;
  expect(await head()).toEqual(plain.map((name) => (money.test(name) ? `${name} (EUR)` : name)));
  const inEuros = await exported('GET');
  expect(inEuros.map(({ currency }) => currency)).toEqual(['EUR', 'EUR']);
  expect(inEuros.map(({ tag }, n) => tag === without[n]?.tag)).toEqual([false, false]);
  expect(await exported('HEAD')).toEqual(inEuros);
  const others = await service.post(path, 'another', range);
  expect([others.status, others.headers.get('adtally-currency')]).toEqual([200, null]);

  await currencies.set(db.store, 'acme', null);
  await expect.poll(said, { timeout: 5_000, interval: 200 }).toBeNull();
  expect(await head()).toEqual(plain);
});

test('the command sets, lists and takes away currencies, and refuses what is no code', async () => {
  const currency = (...args: string[]) => runCommand(['currency', ...args], environmentOf(db.address));
  expect(await currency('set', 'by-command', 'JPY')).toMatchObject({ code: 0, stdout: '' });
  expect(await currency('list', 'by-command')).toMatchObject({ code: 0, stdout: 'by-command\tJPY\n' });
  expect(JSON.parse((await currency('list', '--json')).stdout)).toEqual([
    { account: 'by-command', currency: 'JPY' },
  ]);
  expect(await currency('set', 'by-command', 'null')).toMatchObject({ code: 0 });
  expect(await currency('list', '--json')).toMatchObject({ code: 0, stdout: '[]\n' });
  const wrong = [['a', 'eur'], ['a', 'Euro'], ['a', 'EUR', 'null'], ['a'], []];
  for (const args of wrong) {
    expect(await currency('set', ...args)).toMatchObject({
      code: 2,
      stdout: '',
      stderr: expect.stringMatching(/^error: /),
    });
  }
  await expect(currencies.set(db.store, 'a', 'euro')).rejects.toThrow(/violated/);
  expect(await checkSchema(db.store, catalog)).toEqual([]);
});
