/**
 * The engine process: runs clickhouse-local with its own arguments until the last query of `--query` ends, which is
 * when standard input closes. Started through launch.ts only.
 */
import { getPriority, setPriority } from 'node:os';
import { libchdbPath } from 'chdb/libchdb';
import { DataType, load, open } from 'ffi-rs';

const argv = ['clickhouse-local', ...process.argv.slice(2)];

// The engine takes every core that is free; whoever passes its answers on needs little and goes first. On two cores the
// 99th percentile of a small report beside two large ones was 82 ms without and 61 ms with it. Threads that begin later
// inherit it. Who was started with a lower priority keeps that: nobody may raise his own.
const besides = 5;
if (getPriority() < besides) setPriority(besides);

open({ library: 'chdb', path: libchdbPath() });
// Blocks this thread for the life of the server; the result is a pointer that nobody reads.
load({
  library: 'chdb',
  funcName: 'chdb_query_cmdline',
  retType: DataType.External,
  paramsType: [DataType.I32, DataType.StringArray],
  paramsValue: [argv.length, argv],
});
