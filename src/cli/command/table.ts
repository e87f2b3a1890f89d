import { text } from 'node:stream/consumers';
import type { ReadStatement, Reads } from '../../../clickhouse/reader.ts';
import { line } from './command.ts';

/** The lines of a table for people with the rows of a statement; none where it has none. */
export async function tableOf(reader: Reads, { query, settings, ...more }: ReadStatement): Promise<string[]> {
  const table = await reader.stream({
    ...more,
    query: `${query}\nFORMAT PrettyCompactMonoBlock`,
    settings: {
      ...settings,
      output_format_pretty_color: 0,
      output_format_pretty_row_numbers: 0,
      output_format_pretty_max_value_width: 200,
      output_format_pretty_max_column_name_width_cut_to: 0,
    },
  });
  const lines = (await text(table)).trimEnd().split('\n');
  return lines.flatMap((each) => (each === '' ? [] : [line([each])]));
}
