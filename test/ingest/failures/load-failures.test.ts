import { ClickHouseError } from '@clickhouse/client';
import { describe, expect, test } from 'vitest';
import { InputError } from '../../../ingest/input/input-error.ts';
import {
  isOfInput,
  LoadError,
  LoadRefused,
  loadFailure,
  Stopped,
} from '../../../ingest/ledger/load-error.ts';

// What the caller of a load is told of what ended it.
const failure = (error: unknown, signal?: AbortSignal) => loadFailure(error, 'e.avro', signal) as Error;
const ofClickHouse = (message: string) => new ClickHouseError({ message, code: '241', type: 'MEMORY_LIMIT' });
const stopped = AbortSignal.abort();
const abort = () => new DOMException('The operation was aborted', 'AbortError');

describe('a load that was asked to stop', () => {
  test.each([
    ['by what it waited for', abort()],
    ['by a statement that was broken off', new Error('broken off', { cause: abort() })],
  ])('has stopped: it ends %s', (_, error) => {
    expect(failure(error, stopped)).toBeInstanceOf(Stopped);
    expect(failure(error, stopped)).toMatchObject({ message: 'stopped', cause: error });
    // Something else was broken off.
    expect(failure(error, new AbortController().signal)).toBe(error);
    expect(failure(error)).toBe(error);
  });

  test('has failed where it fails just then', () => {
    expect(failure(ofClickHouse('Memory limit exceeded'), stopped)).toBeInstanceOf(LoadError);
    expect(failure('no error', stopped)).toBe('no error');
  });
});

test.each([
  ['an answer', ofClickHouse('Memory limit exceeded\nStack trace'), 'Memory limit exceeded.'],
  ['a sentence', ofClickHouse(' Memory limit exceeded. '), 'Memory limit exceeded.'],
  ['no connection', Object.assign(new Error('connect EPERM'), { syscall: 'connect' }), 'connect EPERM.'],
  ['a lost connection', new Error('socket hang up'), 'socket hang up.'],
])('a failure of ClickHouse says how to continue: %s', (_, error, said) => {
  expect(failure(error)).toBeInstanceOf(LoadError);
  expect(failure(error)).toMatchObject({
    message: `e.avro: ClickHouse failed: ${said} Rows already loaded are kept. Run the same command again to continue.`,
    cause: error,
  });
});

test.each([
  [
    'Avro',
    'Code: 1001. DB::Exception: std::exception. Code: 1001, type: avro::Exception, e.what() = EOF reached (version 26.7), Stack trace',
    'is a damaged Avro file: the records of a block cannot be decoded: EOF reached',
  ],
  [
    'Avro, without a version',
    'avro::Exception, e.what() = EOF reached',
    'is a damaged Avro file: the records of a block cannot be decoded: EOF reached',
  ],
  [
    'a decimal of Avro that is padded',
    'Code: 321. DB::Exception: Cannot parse type Decimal(10, 2), got 11: While executing AvroRowInputFormat. (VALUE_IS_OUT_OF_RANGE_OF_DATA_TYPE)',
    'its records cannot be read: Cannot parse type Decimal(10, 2), got 11',
  ],
  [
    'an enum of Avro',
    'Avro enum index 3 is out of range: (at row 1)\n: While executing AvroRowInputFormat. ',
    'its records cannot be read: Avro enum index 3 is out of range',
  ],
  [
    'Parquet',
    'Code: 117. DB::Exception: Unexpected end: read stage: MainData: column: spend: While executing ParquetV3BlockInputFormat',
    'column spend cannot be read: Unexpected end; write the file anew',
  ],
  [
    'Parquet, as the client tells it',
    'Unexpected end: read stage: MainData: column: spend: While executing ParquetV3BlockInputFormat',
    'column spend cannot be read: Unexpected end; write the file anew',
  ],
  [
    'a decimal of Parquet that its type has no room for',
    "Parquet decimal type precision or scale is too big (18 digits) for physical type INT32: column 'spend': While executing ParquetV3BlockInputFormat. ",
    "it cannot be read: Parquet decimal type precision or scale is too big (18 digits) for physical type INT32: column 'spend'; write the file anew",
  ],
])('what the engine cannot decode is a fault of the file: %s', (_, message, said) => {
  const error = ofClickHouse(message);
  expect(failure(error)).toBeInstanceOf(InputError);
  expect(failure(error)).toMatchObject({
    message: `e.avro: ${said}. Rows already loaded are kept.`,
    cause: error,
  });
});

test.each([
  'MEMORY_LIMIT_EXCEEDED',
  'QUERY_WAS_CANCELLED',
  'NOT_ENOUGH_SPACE',
  'CANNOT_SCHEDULE_TASK',
  'CANNOT_ALLOCATE_MEMORY',
  'ABORTED',
])('what ends a statement while it reads a file is no fault of the file: %s', (type) => {
  for (const where of [
    'read stage: ColumnData: column: c: While executing Parquet',
    'While executing Avro',
  ]) {
    const message = `no more of it: ${where}`;
    expect(failure(new ClickHouseError({ message, code: '241', type }))).toBeInstanceOf(LoadError);
  }
});

test('what ends the reader of Parquet, and is not told of a column, is no fault of the file', () => {
  const message = 'std::bad_alloc: While executing ParquetV3BlockInputFormat. ';
  expect(failure(new ClickHouseError({ message, code: '1001', type: 'STD_EXCEPTION' }))).toBeInstanceOf(
    LoadError,
  );
});

test.each([
  ['what is in the file', new InputError('e.avro: is empty'), true],
  ['a failure of ClickHouse', failure(ofClickHouse('Memory limit exceeded')), true],
  ['what ClickHouse has of it', new LoadError('the chunk has 2 records, but ClickHouse has 1 event'), true],
  ['a lost connection', failure(new Error('socket hang up')), false],
  [
    'a server that shuts down',
    failure(new ClickHouseError({ message: '', code: '236', type: 'ABORTED' })),
    false,
  ],
  [
    'a full disk',
    failure(new ClickHouseError({ message: '', code: '243', type: 'NOT_ENOUGH_SPACE' })),
    false,
  ],
  ['a fault of adtally', new Error('a fault of adtally'), false],
])('whether a failure keeps no other file out: %s', (_, error, isOfOne) => {
  expect(isOfInput(error)).toBe(isOfOne);
});

test('any other error stays what it is', () => {
  for (const error of [new Error('a fault of adtally'), new InputError('e.avro: is empty')])
    expect(failure(error)).toBe(error);
});

test('what is refused names what was asked for', () => {
  expect(new LoadRefused('no such load')).toMatchObject({ message: 'no such load', field: 'load' });
  expect(new LoadRefused('no such day', 'days')).toMatchObject({ message: 'no such day', field: 'days' });
});
