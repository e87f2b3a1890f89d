import type { FileMetaData, RowGroup } from 'hyparquet';
import {
  bytesOf,
  type Field,
  fieldsOf,
  integerField,
  listField,
  type Struct,
  structField,
  structsOf,
} from './thrift.ts';

/** How a Parquet file begins and ends. */
export const magic = Buffer.from('PAR1');

// Numbers of fields in Parquet's Thrift definition.
const inFile = { rows: 3, groups: 4, keyValues: 5, encryption: 8 };
const inGroup = { columns: 1, fileOffset: 5, ordinal: 7 };
const inColumn = { fileOffset: 2, metadata: 3, offsetIndex: 4, columnIndexLength: 7 };
const inMetadata = { dataPage: 9, indexPage: 10, dictionaryPage: 11, bloomFilter: 14, bloomFilterLength: 15 };

/** Whether a footer that can be read belongs to columns that cannot. @throws {RangeError} if it cannot */
export function isEncrypted(footer: Uint8Array): boolean {
  return fieldsOf(footer).has(inFile.encryption);
}

/** Row groups that follow each other; those without rows are in none. */
export interface RowGroupRun {
  /** Row of the file, from 1. */
  readonly firstRow: number;
  readonly rows: number;
  /** Where its bytes are in the file; `end` is not part of it. */
  readonly start: number;
  readonly end: number;
  /** Numbers of the row groups, from 0. */
  readonly groups: readonly number[];
}

/**
 * Writes the ends of files that begin with the magic bytes and the bytes of a run of row groups, and hold nothing
 * else. What points to other places (page indexes, bloom filters) is left out, and so are notes of the writer
 * about the file, in which the same rows in another file would differ; all else is as it was.
 * @throws {RangeError} for a footer that is not whole
 */
export function feetOf(footer: Uint8Array, metadata: FileMetaData): (run: RowGroupRun) => Buffer {
  const file = fieldsOf(footer);
  const groups = structsOf(required(file, inFile.groups));
  return (run) => {
    const shift = magic.length - run.start;
    const shifted = run.groups.map((n) => shiftedGroup(at(groups, n), at(metadata.row_groups, n), shift));
    const own = new Map(file).set(inFile.rows, integerField(run.rows)).set(inFile.groups, listField(shifted));
    own.delete(inFile.keyValues);
    const bytes = bytesOf(own);
    const length = Buffer.alloc(4);
    length.writeUInt32LE(bytes.length);
    return Buffer.concat([bytes, length, magic]);
  };
}

function shiftedGroup(group: Struct, { columns }: RowGroup, shift: number): Struct {
  const shifted = structsOf(required(group, inGroup.columns)).map((column, n) =>
    shiftedColumn(column, at(columns, n), shift),
  );
  const own = new Map(group).set(inGroup.columns, listField(shifted));
  for (const id of [inGroup.fileOffset, inGroup.ordinal]) own.delete(id);
  return own;
}

function shiftedColumn(column: Struct, { meta_data }: RowGroup['columns'][number], shift: number): Struct {
  const metadata = fieldsOf(required(column, inColumn.metadata).bytes);
  metadata.set(inMetadata.dataPage, integerField(Number(meta_data?.data_page_offset) + shift));
  if (metadata.has(inMetadata.dictionaryPage)) {
    const offset = Number(meta_data?.dictionary_page_offset);
    if (offset > 0) metadata.set(inMetadata.dictionaryPage, integerField(offset + shift));
  }
  for (const name of ['indexPage', 'bloomFilter', 'bloomFilterLength'] as const)
    metadata.delete(inMetadata[name]);
  for (let id = inColumn.offsetIndex; id <= inColumn.columnIndexLength; id++) column.delete(id);
  // Nothing but its pages is there of a column.
  column.set(inColumn.fileOffset, integerField(0));
  return column.set(inColumn.metadata, structField(metadata));
}

function required(fields: Struct, id: number): Field {
  const field = fields.get(id);
  if (!field) throw new RangeError(`field ${id} is missing in the footer`);
  return field;
}

function at<T>(items: readonly T[], index: number): T {
  const item = items[index];
  if (!item) throw new RangeError(`there is no item ${index} in the footer`);
  return item;
}
