import type { DataStatus, Status } from './describe-status.ts';

/** ClickHouse refuses inserts into a partition with 3,000 parts and slows them down from 1,000. */
const manyParts = 800;
const littleSpace = 0.15;

/** What a person should do, most urgent first. */
export function nextSteps(migrations: Status['migrations'], data: DataStatus | undefined): string[] {
  if (migrations === 'newer') return ['update adtally: the store was migrated by a newer version'];
  if (!data) return ['adtally migrate: the store lacks migrations'];
  const { open, loads, disk, size, events } = data;
  return [
    ...(disk.free < disk.total * littleSpace
      ? ['make room on the disk: adtally prune --keep MONTHS, or a larger one']
      : []),
    ...(open.chunksInDoubt > 0
      ? ['load interrupted files again: adtally verify names them, and the same command completes them']
      : []),
    ...(loads.failed_file ? [`load ${loads.failed_file} again: adtally loads says why it failed`] : []),
    ...(size.most_parts > manyParts
      ? ['load larger files, or fewer at a time: a month has too many parts']
      : []),
    ...(open.rejectedRows > 0 ? ['correct rejected rows: adtally rejects lists them'] : []),
    ...(events === 0 ? ['load events: adtally ingest events FILE'] : []),
  ];
}
