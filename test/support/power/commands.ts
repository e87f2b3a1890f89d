import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { event, ndjson } from '../events.ts';
import type { Ground } from '../killed-commands.ts';

/** What the power is cut under. */
export interface PoweredCommand {
  readonly args: readonly string[];
  /** `adtally` with one more migration. */
  readonly newer?: true;
}

/** @param at the root of the disk */
export function poweredCommands(ground: Ground, at: string): Record<string, PoweredCommand> {
  const ingest = ['ingest', 'events', '--quiet'];
  return {
    load: { args: [...ingest, '--chunk-bytes', '60000', join(ground.folder, 'more.ndjson')] },
    'a load of small files': { args: [...ingest, join(ground.folder, 'small-*.ndjson')] },
    'a load with rejected rows': { args: [...ingest, join(ground.folder, 'more-faulty.ndjson')] },
    names: { args: ['ingest', 'campaigns', join(ground.folder, 'other-names.csv')] },
    rebuild: { args: ['rebuild'] },
    unload: { args: ['unload', ground.wrong] },
    replace: { args: [...ingest, '--replaces', ground.wrong, ground.right] },
    confirm: { args: ['confirm', 'both', '--from', '2026-01-01', '--to', '2026-02-03'] },
    replay: { args: ['replay', ground.rejected, ground.corrected] },
    dismiss: { args: ['rejects', ground.rejected, '--dismiss'] },
    prune: { args: ['prune', '--keep', '3y'] },
    close: { args: ['close', 'both', '2026-01', '--anyway'] },
    migrate: { args: ['migrate'], newer: true },
    backup: { args: ['backup', join(at, 'b.tar.zst')] },
    restore: { args: ['restore', ground.backup, '--replace'] },
    token: { args: ['token', 'create', 'both', '--label', 'another'] },
    limit: { args: ['limit', 'set', 'both', '77'] },
    currency: { args: ['currency', 'set', 'both', 'EUR'] },
  };
}

/** The files that these commands read besides those of the ground. */
export function writePoweredFiles({ folder }: Ground): void {
  const lines = (
    name: string,
    count: number,
    of: (n: number) => Partial<Parameters<typeof event>[0]> = () => ({}),
  ) =>
    ndjson(
      Array.from({ length: count }, (_, n) =>
        event({
          event_id: `${name}-${n}`,
          event_time: `2026-0${1 + (n % 4)}-1${n % 9}T12:00:00Z`,
          advertiser_id: 'both',
          publisher_id: 'both',
          campaign_id: `campaign-${n % 5}`,
          ad_unit_id: `ad-unit-${n % 3}`,
          spend: '0.5',
          revenue: '0.25',
          ...of(n),
        }),
      ),
    );
  const write = (name: string, text: string) => writeFileSync(join(folder, name), text);
  write('more.ndjson', lines('more', 1_500));
  for (let n = 0; n < 12; n++) write(`small-${n}.ndjson`, lines(`small-${n}`, 30));
  write(
    'more-faulty.ndjson',
    lines('more-faulty', 300, (n) => (n % 5 ? {} : { quantity: 0 })),
  );
  write('other-names.csv', 'account_id,campaign_id,name\nboth,campaign-1,Two\nboth,campaign-2,Three\n');
}
