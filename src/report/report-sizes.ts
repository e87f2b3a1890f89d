import type { Reader } from '../../clickhouse/reader.ts';
import { compileSizeCheck } from './compile.ts';
import type { Plan } from './plan.ts';

/** How long an answer is valid, and how many are kept. */
const holdsMs = 60_000;
const maxKept = 1_000;

/**
 * Whether reports take only a moment, judged by the rows they read. ClickHouse is asked at most once a minute for the
 * same report, so that callers who are refused and retry cost it nothing.
 */
export class ReportSizes {
  readonly #reader: Reader;
  readonly #known = new Map<string, { readonly small: boolean; readonly until: number }>();

  constructor(reader: Reader) {
    this.#reader = reader;
  }

  /** @throws when ClickHouse cannot be asked */
  async isSmall(plan: Plan): Promise<boolean> {
    const statement = compileSizeCheck(plan);
    const key = JSON.stringify(statement);
    const known = this.#known.get(key);
    if (known && known.until > performance.now()) return known.small;
    const [found] = await this.#reader.rows<{ small: 0 | 1 }>(statement);
    const small = found?.small === 1;
    if (this.#known.size >= maxKept) this.#known.clear();
    this.#known.set(key, { small, until: performance.now() + holdsMs });
    return small;
  }
}
