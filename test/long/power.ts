import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { Command } from 'commander';
import { compile, fileOf } from '../support/compiled.ts';
import { powerCuts } from '../support/power/cuts.ts';
import { cutsBehindLinks } from '../support/power/own-files.ts';

/** Cuts the power under commands, as root on Linux with mkfs.ext4 and mkfs.xfs: `node --import tsx test/long/power.ts --cuts 100`. */
const { cuts, seed, only, unsynced } = new Command('power')
  .option('--cuts <n>', 'how many', Number, 100)
  .option('--seed <n>', 'of commands, disks and moments', Number, 1)
  .option('--only <n>', 'this cut of them alone', Number)
  .option('--unsynced', 'ClickHouse does not wait for the disk')
  .parse()
  .opts<{ cuts: number; seed: number; only?: number; unsynced?: true }>();

const compiled = await compile();
try {
  if (unsynced) {
    const folder = join(dirname(fileOf('clickhouse/client')), 'config/embedded.d');
    mkdirSync(folder);
    writeFileSync(
      join(folder, 'unsynced.xml'),
      '<clickhouse><merge_tree><fsync_after_insert>0</fsync_after_insert><fsync_part_directory>0</fsync_part_directory><min_rows_to_fsync_after_merge>0</min_rows_to_fsync_after_merge></merge_tree></clickhouse>\n',
    );
  }
  const onCut = (text: string): void => void process.stdout.write(`${text}\n`);
  const wrong = await cutsBehindLinks();
  wrong.push(...(await powerCuts({ cuts, seed, only, synced: !unsynced, onCut })));
  for (const each of wrong) process.stdout.write(`${each}\n`);
  if (wrong.length > 0) throw new Error(`${wrong.length} of ${cuts} cuts`);
} finally {
  await compiled.remove();
}
process.stdout.write(
  `seed ${seed}: ${cuts} cuts${unsynced ? ' without syncs' : ''}, nothing lost that was done\n`,
);
