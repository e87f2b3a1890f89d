import { storeTime } from '../../clickhouse/client.ts';
import type { TestService } from './service.ts';
import type { TestStore } from './store.ts';

export function usePast(db: TestStore, service: TestService) {
  return {
    /** The time of the store. */
    now: async () => `${(await storeTime(db.store)).replace(' ', 'T')}Z`,
    /** What a report says, or status, code and detail of its refusal. */
    asked: async (account: string, asOf?: string): Promise<unknown> => {
      const body = { start_time: '2026-03-01', end_time: '2026-04-30', ...(asOf && { as_of: asOf }) };
      const response = await service.post('/v1/campaigns/breakdowns/creative_date', account, body);
      const answer = (await response.json()) as { result: object; code: string; detail: string };
      if (response.status !== 200) return [response.status, answer.code, answer.detail];
      return { ...answer.result, last_update_time: '' };
    },
  };
}
