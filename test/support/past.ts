import { storeTime } from '../../clickhouse/client.ts';
import type { TestService } from './service.ts';
import type { TestStore } from './store.ts';

export interface Past {
  /** The time of the store. */
  now(): Promise<string>;
  /** What a report says, or status, code and detail of its refusal. */
  asked(account: string, asOf?: string): Promise<unknown>;
}

export function usePast(db: TestStore, service: TestService): Past {
  return {
    now: async () => `${(await storeTime(db.store)).replace(' ', 'T')}Z`,
    asked: async (account, asOf) => {
      const body = { start_time: '2026-03-01', end_time: '2026-04-30', ...(asOf && { as_of: asOf }) };
      const response = await service.post('/v1/campaigns/breakdowns/creative_date', account, body);
      const answer = (await response.json()) as { result: object; code: string; detail: string };
      if (response.status !== 200) return [response.status, answer.code, answer.detail];
      return { ...answer.result, last_update_time: '' };
    },
  };
}
