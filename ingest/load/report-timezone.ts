import type { Store } from '../../clickhouse/client.ts';
import { requireTimezone } from '../../clickhouse/migrate/migrate.ts';

const known = new WeakMap<Store, Promise<string>>();

/** The time zone of reports. It is decided when a store is made, so a store is asked once. */
export async function reportTimezone(store: Store): Promise<string> {
  const asked = known.get(store) ?? requireTimezone(store);
  known.set(store, asked);
  try {
    return await asked;
  } catch (error) {
    known.delete(store);
    throw error;
  }
}
