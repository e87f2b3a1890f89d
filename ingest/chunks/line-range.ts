/** Where lines are that follow each other. */
export interface LineRun {
  /** The first one's line of the file, from 1; in Parquet the row. */
  readonly line: number;
  readonly lines: number;
  /** Bytes of the chunk; none in Parquet. */
  readonly start: number;
  readonly end: number;
}

/** What can read its lines once more. */
interface Records {
  records(only: LineRun): Iterable<LinePlace> | AsyncIterable<LinePlace>;
}

type LinePlace = Pick<LineRun, 'line' | 'start' | 'end'>;

/** The last line of a run; 0 where there is none. */
export function lastLine(run: LineRun | undefined): number {
  return run ? run.line + run.lines - 1 : 0;
}

/** The lines of a run, each a run by itself. */
export async function linesOf(chunk: Records, run: LineRun): Promise<LineRun[]> {
  const lines: LineRun[] = [];
  for await (const { line, start, end } of chunk.records(run))
    lines.push({ line, lines: 1, start: run.start + start, end: run.start + end });
  return lines;
}

/** What is left of runs without some of their lines. */
export async function without(
  chunk: Records,
  runs: readonly LineRun[],
  lines: readonly LineRun[],
): Promise<LineRun[]> {
  const unwanted = new Set(lines.map(({ line }) => line));
  const left: LineRun[] = [];
  for (const run of runs) {
    const hit = lines.some(({ line }) => line >= run.line && line < run.line + run.lines);
    const parts = hit ? await linesOf(chunk, run) : [run];
    left.push(...parts.filter(({ line }) => !hit || !unwanted.has(line)));
  }
  return left;
}
