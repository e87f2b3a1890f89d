import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { fileOf } from '../support/compiled.ts';
import {
  adtally,
  Copy,
  type Ground,
  killAfter,
  type Mode,
  makeGround,
  removeGround,
  renewNames,
} from '../support/killed-commands.ts';
import { testSeed as seed, seededRandom, testRounds } from '../support/random.ts';

let ground: Ground;
beforeAll(async () => {
  ground = await makeGround();
});
afterAll(() => removeGround(ground));

interface Case {
  /** @param again whether it is repeated after a kill */
  readonly args: (mode: Mode, again: boolean) => string[];
  readonly program?: () => string;
  /** Whether reports are others afterwards. */
  readonly changes: boolean;
  /** Whether it reads names. */
  readonly names?: true;
}

const current = fileOf('src/cli');
const cases: Record<string, Case> = {
  backup: {
    // A name on a server that a killed backup has used is not free, as the docs say.
    args: (mode, again) => [
      'backup',
      mode === 'server' ? `b${again ? 2 : 1}.tar.zst` : join(ground.folder, `b-${round}.tar.zst`),
    ],
    changes: false,
  },
  restore: {
    args: (mode) => ['restore', mode === 'server' ? 'earlier.tar.zst' : ground.backup, '--replace'],
    changes: true,
  },
  prune: { args: () => ['prune', '--keep', '3y'], changes: false },
  rebuild: { args: () => ['rebuild'], changes: false },
  close: { args: () => ['close', 'both', '2026-01', '--anyway'], changes: false, names: true },
  unload: { args: () => ['unload', ground.wrong], changes: true },
  replace: {
    args: () => ['ingest', 'events', '--quiet', '--replaces', ground.wrong, ground.right],
    changes: true,
  },
  confirm: { args: () => ['confirm', 'both', '--from', '2026-01-01', '--to', '2026-02-03'], changes: true },
  replay: { args: () => ['replay', ground.rejected, ground.corrected], changes: true },
  migrate: { args: () => ['migrate'], program: () => ground.newer, changes: false },
};
const moments = testRounds(1);
let round = 0;

test.each(Object.entries(cases))(
  `%s, killed at any moment, is ended by the same command (seed ${seed})`,
  async (name, { args, program = () => current, changes, names }) => {
    const random = seededRandom(seed + name.length);
    const start = async (copy: Copy, again: boolean) => {
      const env = await copy.env();
      if (names && copy.mode === 'server') await copy.withStore(renewNames);
      return adtally(program(), args(copy.mode, again), env);
    };
    const undisturbed = new Copy(ground, 'server', `${name}-${++round}`);
    await undisturbed.hold();
    const before = await undisturbed.reports();
    const startedAt = performance.now();
    const { code, stderr } = await (await start(undisturbed, false)).ended;
    const wholeMs = performance.now() - startedAt;
    expect(code, stderr).toBe(0);
    const after = await undisturbed.reports();
    expect(after === before, `${name} changes reports`).toBe(!changes);
    await undisturbed.requireClean();
    await undisturbed.remove();
    for (let moment = 0; moment < moments; moment++) {
      // Other ways from command to command: in a run each way comes up several times.
      const way = Object.keys(cases).indexOf(name) + moment;
      const mode: Mode = way % 2 ? 'embedded' : 'server';
      const engineToo = way % 4 > 1;
      // The process takes a fifth of the time to start.
      const share = 0.2 + (0.85 * (moment + random())) / moments;
      const afterMs = wholeMs * share + (mode === 'embedded' ? ground.engineStartMs : 0);
      const what = `${name} killed after ${Math.round(afterMs)} ms, ${Math.round(share * 100)} % of its time, ${mode}${engineToo ? ', with the engine' : ''}, seed ${seed}`;
      const copy = new Copy(ground, mode, `${name}-${++round}`);
      try {
        await killAfter(copy, await start(copy, false), afterMs, engineToo);
        if (name === 'restore') await requireOldOrNew(copy, before, after, what);
        if (name === 'replace') requireEachOldOrNew(await copy.reports(), before, after, what);
        const ended = await (await start(copy, true)).ended;
        // Killed when the work was done, it finds the backup there.
        const isThere = name === 'backup' && /is there already/.test(ended.stderr);
        expect(isThere || ended.code === 0, `${what}: ${ended.stderr}`).toBe(true);
        await copy.hold();
        expect((await copy.reports()) === after, `${what}: reports are those after it`).toBe(true);
        await copy.requireClean();
      } finally {
        await copy.remove();
      }
    }
  },
  1_200_000,
);

/** Of a killed replacement each report shows the old events or the new ones. */
function requireEachOldOrNew(reports: string, before: string, after: string, what: string): void {
  const known = new Set([before, after].flatMap((each) => each.split('\n')));
  for (const report of reports.split('\n'))
    expect(known.has(report), `${what}: ${report.slice(0, 60)}`).toBe(true);
}

/** A killed restore has left the old data or the new; or every command says how to end it. */
async function requireOldOrNew(copy: Copy, before: string, after: string, what: string): Promise<void> {
  const status = await adtally(current, ['status', '--json'], await copy.env()).ended;
  expect(status.code, `${what}: ${status.stderr}`).toBe(0);
  const { migrations, next } = JSON.parse(status.stdout);
  if (migrations.length === 0) {
    const reports = await copy.reports();
    expect(reports === before || reports === after, what).toBe(true);
    return;
  }
  expect(migrations, what).toBe('unfinished restore');
  expect(next[0], what).toContain('adtally restore ');
  const refused = await adtally(current, ['loads'], await copy.env()).ended;
  expect(refused, what).toMatchObject({
    code: 1,
    stderr: expect.stringContaining('end it with: adtally restore '),
  });
  await expect(copy.reports(), what).rejects.toThrow('end it with: adtally restore ');
}
