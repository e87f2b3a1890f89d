import { expect, test, vi } from 'vitest';
import type { Store } from '../../../clickhouse/client.ts';
import type { KnownChunk, SendableChunk } from '../../../ingest/chunks/sendable-chunk.ts';
import { claimChunks } from '../../../ingest/delivery/claim-chunks.ts';
import { KeyReused } from '../../../ingest/delivery/loaded-otherwise.ts';
import { Sender } from '../../../ingest/delivery/sender.ts';
import { InputChanged } from '../../../ingest/input/input-error.ts';

// What is decided before the ledger is written: here it has no store, so that any statement fails.
const store = {} as Store;
const known: KnownChunk = { id: 'own', content: '', bytes: 1, loadedRows: undefined };
const other = { ...known, id: 'other' };

async function claimed(
  candidates: SendableChunk['candidates'],
  options: Partial<Parameters<typeof claimChunks>[4]> = {},
) {
  const sender = new Sender({ store, file: 'e.ndjson', judge: {} as never });
  sender.interruptions = 3;
  const unchanged = vi.fn(async () => {});
  const chunks = (async function* () {
    yield { id: 'own', candidates } as unknown as SendableChunk;
  })();
  const all = claimChunks(chunks, { store }, undefined, sender, {
    ...{ file: 'e.ndjson', again: true, unchanged },
    ...options,
  });
  const { value } = await all.next();
  return { ...value, looks: unchanged.mock.calls.length };
}

test('a chunk that is loaded is skipped, with its rows; one in doubt, or of another name, is not', async () => {
  const loaded = { ...known, loadedRows: 7 };
  expect(await claimed([{ ...loaded, matches: true }])).toMatchObject({ claim: { how: 'skip', rows: 7 } });
  expect(await claimed([{ ...known, matches: true }])).toMatchObject({ claim: { how: 'send' } });
  expect(await claimed([{ ...other, loadedRows: 7, matches: true }])).toMatchObject({
    claim: { how: 'send' },
  });
});

test('what a replacement holds is judged, also where it is loaded already', async () => {
  const hold = { load: 'new', replaced: ['old'] };
  const loaded = { ...known, loadedRows: 7, matches: true };
  expect(await claimed([loaded], { hold })).toMatchObject({ claim: { how: 'send' } });
});

test('what happens to a load is counted from before the claim', async () => {
  const now = performance.now();
  const { claimed: start } = await claimed([]);
  expect(start?.interruptions).toBe(3);
  expect(start?.at).toBeGreaterThanOrEqual(now);
});

test('where other bytes were sent from a place, the input is looked at again: it may be another one by now', async () => {
  const looks = async (...candidates: SendableChunk['candidates']) => (await claimed(candidates)).looks;
  expect(await looks({ ...other, matches: false }, { ...other, matches: true })).toBe(1);
  expect(await looks({ ...other, matches: true })).toBe(0);
  expect(await looks({ ...other, matches: false }, { ...known, matches: true })).toBe(0);
  expect(await looks()).toBe(0);
  const unchanged = () => Promise.reject(new InputChanged('e.ndjson: is another file now'));
  await expect(claimed([{ ...other, matches: false }], { unchanged })).rejects.toThrow('is another file now');
});

test('other bytes under a key are refused, and those that came under it before are not', async () => {
  const key = 'monday';
  const candidates = [
    { ...known, matches: true },
    { ...other, matches: false },
  ];
  await expect(claimed(candidates, { key })).rejects.toThrow(KeyReused);
  expect(await claimed(candidates)).toMatchObject({ claim: { how: 'send' } });
  expect(await claimed(candidates.slice(0, 1), { key })).toMatchObject({ claim: { how: 'send' } });
});

test('bytes that were read in another way are looked for, unless they are to count again', async () => {
  const otherwise = [{ ...other, matches: true }];
  // The statement that looks for them fails.
  await expect(claimed(otherwise, { again: false })).rejects.toThrow(TypeError);
  expect(await claimed(otherwise)).toMatchObject({ claim: { how: 'send' } });
  expect(await claimed([{ ...other, matches: false }], { again: false })).toMatchObject({
    claim: { how: 'send' },
  });
});
