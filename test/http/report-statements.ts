import { type Store, select } from '../../clickhouse/client.ts';

/** A setting of the statements of reports alone, see schedulingSettings in src/report/stream.ts. */
const mark = 'low_priority_query_wait_time_ms';

/** Whether a statement, told by its settings, reads the rows of a report. */
export const isReport = ({ settings }: { settings: URLSearchParams }): boolean => settings.has(mark);

const running = `current_database = currentDatabase() AND mapContains(Settings, '${mark}') AND NOT is_cancelled`;

/** Ids of the statements that read the rows of reports in the database of `store`, but for those that were killed. */
export async function reportsRunning(store: Store): Promise<string[]> {
  const query = `SELECT query_id AS id FROM system.processes WHERE ${running}`;
  return (await select<{ id: string }>(store, query)).map(({ id }) => id);
}

/** Kills them all. */
export async function killReports(store: Store): Promise<void> {
  await store.command({ query: `KILL QUERY WHERE ${running}` });
}
