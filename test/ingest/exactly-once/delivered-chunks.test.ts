import { Readable } from 'node:stream';
import { expect, test, vi } from 'vitest';
import type { Store } from '../../../clickhouse/client.ts';
import type { SendableChunk } from '../../../ingest/chunks/sendable-chunk.ts';
import type { SendableClaim } from '../../../ingest/delivery/chunk-claims.ts';
import { deliverChunk } from '../../../ingest/delivery/deliver-chunk.ts';
import type { Sender, Sending, SentRows } from '../../../ingest/delivery/sender.ts';
import type { Load } from '../../../ingest/ledger/load.ts';
import { LoadError } from '../../../ingest/ledger/load-error.ts';
import { RejectLimit } from '../../../ingest/rejects/reject-limit.ts';

// What becomes of a chunk by what is sent of it. The ledger is not asked: here it has no store.
const chunk = { id: 'chunk', unit: 'line', firstLine: 4, rows: 10 } as SendableChunk;
const first: SendableClaim = { how: 'send', loadTime: '2026-03-01 00:00:00.000000' };
const load = {
  id: 'load',
  isBehind: false,
  heartbeatLapsedSince: () => false,
  requeueIfLapsed: async () => false,
} as unknown as Load;
const none = { rows: 0, rejectedRows: 0, duplicates: 0, leftOut: 0, future: 0, early: 0, rejects: [] };
const all: SentRows = { ...none, rows: 4, rejectedRows: 3, duplicates: 2, leftOut: 1 };

function delivery(
  answers: Partial<Pick<Sender, 'send' | 'sendBatchAgain' | 'holdBack' | 'counts'>>,
  of: { readonly load?: Load; readonly store?: object } = { load },
) {
  const sender = {
    interruptions: 0,
    counts: false,
    holds: false,
    send: vi.fn(),
    holdBack: vi.fn(),
    ...answers,
  };
  const rejectLimit = new RejectLimit({ rows: 5 });
  const takeBack = vi.spyOn(rejectLimit, 'takeBack');
  const deliver = (claim: SendableClaim = first) =>
    deliverChunk(
      {
        ...{
          ledger: { store: (of.store ?? {}) as Store },
          load: of.load,
          rejectLimit,
          onSent: () => {},
        },
        sender: sender as unknown as Sender,
      },
      chunk,
      claim,
      { interruptions: 0, at: 0 },
    );
  return { sender, takeBack, deliver };
}

test('a chunk is sent when each of its records is an event, a duplicate, rejected or left out', async () => {
  const { sender, deliver } = delivery({ send: async () => all });
  expect(await deliver()).toEqual({ ...all, isHeldBack: false });
  expect(sender.holdBack).not.toHaveBeenCalled();
});

test('a chunk whose records are not all accounted for does not count as loaded, and what is there is told', async () => {
  const { deliver } = delivery({ send: async () => ({ ...all, rows: 3 }) });
  await expect(deliver()).rejects.toThrow(LoadError);
  await expect(deliver()).rejects.toThrow(
    /from line 4 has 10 records, but .* has 3 events and 3 rejected rows of it, beside 2 duplicates, and left out 1\. .*chunk chunk$/,
  );
  const { deliver: another } = delivery({ send: async () => ({ ...none, rows: 3 }) });
  await expect(another()).rejects.toThrow(/has 3 events and 0 rejected rows of it\. It/);
  // A dry run stores nothing.
  const { deliver: tried } = delivery({ send: async () => ({ ...all, rows: 3 }) }, {});
  expect(await tried()).toMatchObject({ rows: 3, isHeldBack: false });
});

test.each([
  ['was interrupted', 1, false],
  ['was taken for dead', 0, true],
])('what the engine may have forgotten is held back where the load %s meanwhile', async (_, more, lapsed) => {
  const silent = { ...load, heartbeatLapsedSince: () => lapsed } as unknown as Load;
  const store = { query: async () => ({ json: async () => [{ forgotten: 1 }] }) };
  const send = vi.fn(async () => {
    disturbed.sender.interruptions += more;
    return all;
  });
  const disturbed = delivery({ send, holdBack: async () => all }, { load: silent, store });
  expect(await disturbed.deliver()).toMatchObject({ isHeldBack: true });
  expect(disturbed.takeBack.mock.calls).toEqual([[10, 3]]);
});

test('a load that has to go behind others waits with nothing in its hands, and sends again what it had noted for a batch', async () => {
  const store = {
    exec: async () => ({ stream: Readable.from([]) }),
    query: async () => ({ json: async () => [{ forgotten: 1 }] }),
  };
  const done: string[] = [];
  const requeueIfLapsed = async () => {
    done.push('waited');
    return false;
  };
  const behind = { ...load, isBehind: true, requeueIfLapsed } as unknown as Load;
  const send = async (_: SendableChunk, { note, before }: Sending) => {
    done.push('sent');
    await note('batch');
    return before().then(() => all);
  };
  const sendBatchAgain = async (_: SendableChunk, token: string) => {
    done.push(`sent again: ${token}`);
    return all;
  };
  const asked = delivery({ send, sendBatchAgain, holdBack: async () => all }, { load: behind, store });
  // What ClickHouse may have forgotten meanwhile does not count as loaded.
  expect(await asked.deliver()).toEqual({ ...all, isHeldBack: true });
  expect(done).toEqual(['sent', 'waited', 'sent again: batch']);
  expect(asked.sender.interruptions).toBe(1);
});

test('a failure to send a chunk is told, and is no reason to hold it back', async () => {
  const { sender, deliver } = delivery({ send: () => Promise.reject(new Error('refused')) });
  await expect(deliver()).rejects.toThrow('refused');
  expect(sender.holdBack).not.toHaveBeenCalled();
});

test('where rows count for a limit, a chunk of a batch is counted before it is stored again', async () => {
  const { sender, deliver } = delivery({ counts: true, holdBack: async () => all });
  expect(await deliver({ ...first, how: 'send-again', batch: 'batch' })).toMatchObject({ isHeldBack: true });
  expect(sender.send).not.toHaveBeenCalled();
});

test('what is held back fails where it is another number of records than were cut', async () => {
  const twice = { ...all, rows: 8, rejectedRows: 6 };
  const { deliver } = delivery({ holdBack: async () => twice });
  await expect(deliver({ ...first, how: 'hold-back' })).rejects.toThrow('has 8 events');
});
