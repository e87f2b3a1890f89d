import assert from 'node:assert/strict';
import { join } from 'node:path';
import { read, wrkSide } from '../harness/http-client.ts';
import { ratio, runInTurn } from '../harness/measure.ts';
import { startServer } from '../harness/processes.ts';
import { type Bench, type Outcome, report, type Service } from '../harness/scenario.ts';
import { serveByNginx } from '../peers/nginx.ts';

const callers = 64;

/** An answer from memory against the same bytes from nginx, and from the least program of Node.js that writes them. */
export async function keptAnswers(bench: Bench, service: Service): Promise<Outcome[]> {
  bench.progress('an answer from memory');
  const asked = service.request(report('/v1/campaigns/breakdowns/device_date', 3, 'small'));
  const answer = Buffer.from(await read(asked));
  assert.deepEqual(withoutTime(await read(asked)), withoutTime(answer.toString()));
  const stops: (() => Promise<void>)[] = [];
  try {
    const nginx = await serveByNginx(bench.scratch, answer);
    stops.push(nginx.stop);
    assert.deepEqual(Buffer.from(await (await fetch(nginx.url)).arrayBuffer()), answer);
    const bare = await startServer(bench.compiled, ['bench/peers/bare-node.js', `${answer.length}`], {});
    stops.push(bare.stop);
    assert.equal((await read({ ...asked, url: bare.url })).length, answer.length);
    const script = (name: string) => join(bench.scratch, `${name}.lua`);
    const options = (name: string) => ({ callers, seconds: bench.callSeconds, script: script(name) });
    const sides = await runInTurn(
      [
        wrkSide('adtally', asked, options('adtally')),
        wrkSide('nginx, a file', { url: nginx.url, headers: {}, body: '' }, options('nginx')),
        wrkSide('node:http alone', { ...asked, url: bare.url }, options('node')),
      ],
      bench.runs,
    );
    const [ours, file, node] = sides.map(({ samples }) => samples);
    return [
      {
        what: `answer from memory, ${callers} callers`,
        unit: 'requests/s',
        sides,
        facts: { bytes: answer.length },
        goals: [
          { goal: 'keptNginx', value: ratio(ours ?? [], file ?? []).median },
          { goal: 'keptNode', value: ratio(ours ?? [], node ?? []).median },
        ],
      },
    ];
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'ENOENT')) throw error;
    bench.skip(`an answer from memory, without nginx or wrk: ${error.message}`);
    return [];
  } finally {
    for (const stop of stops) await stop();
  }
}

/** What an answer says, but for the time of its request. */
const withoutTime = (answer: string) => {
  const { result, ...rest } = JSON.parse(answer);
  return { ...rest, result: { ...result, last_update_time: '' } };
};
