import type { Reader } from '../../clickhouse/reader.ts';
import { compileSummary } from './compile.ts';
import type { ReportFormatName } from './formats.ts';
import type { Plan } from './plan.ts';
import { maxRows } from './sheet.ts';
import { type StreamOptions, schedulingSettings } from './stream.ts';

/** What was asked for of all rows, in digits. */
export interface Summary {
  /** How many rows there would be without a limit. */
  readonly rowCount?: string;
  /** By figure, in the order of a row. */
  readonly totals?: Readonly<Record<string, string>>;
}

/** A report has more rows than a sheet. */
export class TooManyRows extends Error {
  constructor(rows: string) {
    super(
      `a sheet holds ${maxRows} rows, and this report has ${rows}; narrow it by filters or limit, or ask for CSV`,
    );
  }
}

/**
 * What an answer says of all its rows where only its headers can: JSON says it itself. It is read right before the rows,
 * by a statement of its own.
 * @throws {TooManyRows} when a sheet does not hold them
 * @throws what the reader throws
 */
export async function readSummary(
  reader: Reader,
  plan: Plan,
  format: ReportFormatName,
  { signal, timeoutSeconds, small }: Pick<StreamOptions, 'signal' | 'timeoutSeconds' | 'small'>,
): Promise<Summary> {
  const { limit, totals } = plan.options;
  const needed = format === 'xlsx' || limit !== undefined || totals;
  if (format === 'json' || !needed) return {};
  const statement = compileSummary(plan);
  const settings = {
    ...statement.settings,
    ...schedulingSettings(small),
    max_execution_time: timeoutSeconds,
  };
  const [row] = await reader.rows<Record<string, string>>({ ...statement, settings }, { signal });
  if (!row) throw new Error('the summary of a report has no row');
  const { row_count: rowCount = '', ...figures } = row;
  if (format === 'xlsx' && Math.min(Number(rowCount), limit ?? Infinity) > maxRows)
    throw new TooManyRows(rowCount);
  return {
    ...(limit !== undefined && { rowCount }),
    ...(totals && {
      totals: Object.fromEntries(
        Object.entries(figures).map(([name, value]) => [name.replace(/^total_/, ''), value]),
      ),
    }),
  };
}
