import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, vi } from 'vitest';
import { connect, select } from '../../clickhouse/client.ts';
import { engineIn } from './embedded-processes.ts';
import { type Command, type Commands, useCommands } from './process.ts';

export const accounts = ['northwind-outdoor', 'daily-harbor', 'luma-cosmetics', 'pixelplay-games'];
export const sample = 500_000;

/** A DATA_DIR for each test, and what `demo` does there. */
export interface Demo {
  readonly commands: Commands;
  readonly dataDir: string;
  start(): Command;
  engineUrl(): string | undefined;
  /** One number from the store. @throws while there is no store, or no such table yet */
  number(query: string): Promise<number>;
  /** The sample is there once, in the raw events and in every rollup; no rollup may lag behind. */
  expectWholeSample(): Promise<void>;
}

export function useDemo(): Demo {
  const commands = useCommands();
  let dataDir: string;
  beforeEach(() => {
    dataDir = mkdtempSync(join(tmpdir(), 'adtally-demo-'));
  });
  afterEach(async () => {
    await commands.killAll();
    await vi.waitUntil(() => engineUrl() === undefined, { timeout: 30_000 });
    rmSync(dataDir, { recursive: true, maxRetries: 20 });
  });

  const engineUrl = (): string | undefined => engineIn(dataDir)?.address.url;
  const number = async (query: string): Promise<number> => {
    const engine = engineIn(dataDir);
    if (!engine) throw new Error('there is no store');
    const store = connect({ ...engine.address, database: 'adtally' });
    try {
      const [row] = await select<{ number: string }>(store, `SELECT toString((${query})) AS number`);
      return Number(row?.number);
    } finally {
      await store.close();
    }
  };
  return {
    commands,
    get dataDir() {
      return dataDir;
    },
    start: () => commands.start(['demo'], { DATA_DIR: dataDir, PORT: '0' }),
    engineUrl,
    number,
    expectWholeSample: async () => {
      expect(await number('SELECT count() FROM events')).toBe(sample);
      expect(await number('SELECT uniqExact(event_id) FROM events')).toBe(sample);
      for (const [table, side] of [
        ['campaigns_device_creative_date', 'advertiser_id'],
        ['campaigns_date', 'advertiser_id'],
        ['ad_units_device_site_date', 'publisher_id'],
        ['ad_units_date', 'publisher_id'],
      ]) {
        const raw = `SELECT sum(impressions) FROM events WHERE ${side} != ''`;
        expect(await number(`SELECT sum(impressions) FROM ${table}`)).toBe(await number(raw));
      }
    },
  };
}
