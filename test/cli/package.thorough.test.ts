import { execFileSync } from 'node:child_process';
import {
  chmodSync,
  chownSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { beforeAll, expect, test } from 'vitest';
import { useFolder } from '../support/folder.ts';
import { checkout, type Ended, listening, postJson, startProcess } from '../support/process.ts';

/** `nobody`, where the tests run as root. */
const nobody = 65_534;
const asNobody = process.getuid?.() === 0;

const folder = useFolder();
const home = join(folder, 'home');
const empty = join(folder, 'empty');
let tarball = '';

/** Starts a program as a user without rights, in the folder of the installation, with a `HOME` that was empty. */
function start(program: string, args: readonly string[], env: Record<string, string> = {}) {
  const { PATH = '' } = process.env;
  const inFolder = ['--chdir', empty, '-i', `PATH=${PATH}`, `HOME=${home}`];
  const given = Object.entries(env).map(([name, value]) => `${name}=${value}`);
  const user = ['setpriv', '--reuid', `${nobody}`, '--regid', `${nobody}`, '--clear-groups'];
  const [first = '', ...rest] = [...(asNobody ? user : []), 'env', ...inFolder, ...given, program, ...args];
  return startProcess(first, rest);
}

async function run(program: string, args: readonly string[], env?: Record<string, string>): Promise<Ended> {
  const ended = await start(program, args, env).ended;
  expect(ended.code, ended.stderr).toBe(0);
  return ended;
}

const adtally = './node_modules/.bin/adtally';
const prefix = join(home, 'machine');
const ofMachine = join(prefix, 'bin/adtally');
const installing = readFileSync(join(checkout, 'docs/configuration.md'), 'utf8');

const installLocally = (...packages: readonly string[]): Promise<Ended> =>
  run('npm', ['install', '--no-audit', '--no-fund', ...packages]);

/** Installs for the whole machine, which is a folder here. */
const installGlobally = (...packages: readonly string[]): Promise<Ended> => {
  // npm would look for it below the prefix, and miss a registry or a certificate that it names.
  const settings = execFileSync('npm', ['config', 'get', 'globalconfig'], { encoding: 'utf8' }).trim();
  const where = ['--global', '--prefix', prefix, '--globalconfig', settings];
  return installLocally(...where, ...packages);
};
/** Of all files below a folder, in MB. */
const megabytesOf = (path: string): number =>
  Number(execFileSync('du', ['-sk', path], { encoding: 'utf8' }).split('\t')[0]) / 1e3;

beforeAll(async () => {
  const packed = await startProcess('npm', ['pack', '--silent', '--pack-destination', folder]).ended;
  expect(packed.code, packed.stderr).toBe(0);
  tarball = join(folder, packed.stdout.trim().split('\n').at(-1) ?? '');
  for (const made of [home, empty]) mkdirSync(made);
  copyFileSync(tarball, join(folder, 'adtally.tgz'));
  if (asNobody) {
    for (const owned of [home, empty]) chownSync(owned, nobody, nobody);
    chmodSync(folder, 0o755);
  }
  await installLocally('../adtally.tgz');
}, 600_000);

test('the package has the size that the docs say, and neither sources nor tests', () => {
  const [, most] = /a package of less than (\d+) MB/.exec(installing) ?? [];
  expect(statSync(tarball).size / 1e6).toBeLessThan(Number(most));
  const files = execFileSync('tar', ['-tzf', tarball], { encoding: 'utf8' }).trim().split('\n');
  // What --suggest knows.
  const examples = readdirSync(join(checkout, 'examples')).map((file) => `package/examples/${file}`);
  expect(files).toEqual(expect.arrayContaining(examples));
  const wrong = files.filter(
    (file) =>
      !/^package\/((dist|clients|deploy|docs|examples|clickhouse\/config)\/|[^/]+\.(md|json)$|LICENSE$)/.test(
        file,
      ),
  );
  expect(wrong).toEqual([]);
  expect(files.filter((file) => /\.ts$|\.map$|\/(test|bench)\//.test(file))).toEqual([]);
});

test('an operator finds every page, rule and configuration that the installed pages name', async () => {
  const installed = join(empty, 'node_modules/adtally');
  expect((await run(adtally, ['--help'])).stdout).toContain(`${installed}/`);
  const pages = readdirSync(installed, { recursive: true, encoding: 'utf8' }).filter((file) =>
    file.endsWith('.md'),
  );
  expect(pages).toEqual(expect.arrayContaining(['README.md', 'docs/operations.md', 'deploy/helm/README.md']));
  const missing = pages.flatMap((page) => {
    const links = readFileSync(join(installed, page), 'utf8').matchAll(/\]\((?!\w+:|#)([^)#]+)/g);
    return [...links]
      .map(([, link = '']) => join(dirname(page), link))
      .filter((file) => !existsSync(join(installed, file)));
  });
  // What is only in a checkout.
  const ofCheckout = /\.(png|svg)$|^bench\/|^CONTRIBUTING\.md$|^docs\/(architecture|decisions)\.md$/;
  expect(missing.filter((file) => !ofCheckout.test(file))).toEqual([]);
});

test('it tells its version with the commit it was built from', async () => {
  const head = execFileSync('git', ['rev-parse', '--short=12', 'HEAD'], { cwd: checkout, encoding: 'utf8' });
  expect((await run(adtally, ['--version'])).stdout).toMatch(
    new RegExp(`^\\d+\\.\\d+\\.\\d+\\S* \\(${head.trim()}(, changed)?\\)\n$`),
  );
});

test('npx runs it at once, and installed for a whole machine it is a command', async () => {
  const version = (await run(adtally, ['--version'])).stdout;
  expect((await run('npx', ['--yes', '--package', '../adtally.tgz', 'adtally', '--version'])).stdout).toBe(
    version,
  );
  await installGlobally('../adtally.tgz');
  expect((await run(ofMachine, ['--version'])).stdout).toBe(version);
});

test.each([
  { how: 'locally', folder: join(empty, 'node_modules'), command: adtally, install: installLocally },
  { how: 'globally', folder: prefix, command: ofMachine, install: installGlobally },
])(
  'installed $how without the engine, a forgotten CLICKHOUSE_URL is told at once, with both ways out',
  async (where) => {
    const before = megabytesOf(where.folder);
    expect(before).toBeLessThan(100);
    let hint = '';
    for (const asked of ['serve', 'demo', 'status']) {
      const { code, stdout, stderr } = await start(where.command, [asked]).ended;
      expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
      expect(stderr).toMatch(/^error: there is no ClickHouse here: set CLICKHOUSE_URL .*\n$/);
      expect(existsSync(join(empty, '.data'))).toBe(false);
      hint = stderr;
    }
    const [, engine = ''] = /npm install --global (.*) \(without/.exec(hint) ?? [];
    expect(installing).toContain(`npm install --global ./adtally-*.tgz ${engine}`);
    await where.install(...engine.split(' '));
    const megabytes = Math.round((megabytesOf(where.folder) - before) / 50) * 50;
    expect(installing).toContain(`ClickHouse (${megabytes} MB)`);
    const { stdout } = await run(where.command, ['status'], { DATA_DIR: join(empty, 'data') });
    expect(stdout).toMatch(/ClickHouse \d/);
  },
);

test('a user without rights loads, serves and asks for a report on nothing but what npm installed', async () => {
  const env = { DATA_DIR: join(empty, 'data'), PORT: '0', RECEIVE_PORT: '0', LOG_LEVEL: 'info' };
  const demo = start(adtally, ['demo'], env);
  const url = await listening(demo);
  const [, token = ''] = await demo.said(/^northwind-outdoor\t(adt_\w+)\t/m);
  expect(await rows(url, token)).toBeGreaterThan(0);
  const page = await fetch(`${url}/app`);
  // With its script and style, which are built before.
  expect((await page.text()).length).toBeGreaterThan(100_000);
  expect((await demo.kill('SIGINT')).code).toBe(0);

  const made = await run(adtally, ['token', 'create', 'northwind-outdoor', '--expires', '2099-01-01'], env);
  expect(made.stdout).toMatch(/^adt_\w{36}\n$/);
  const service = start(adtally, ['serve'], env);
  expect(await rows(await listening(service), made.stdout.trim())).toBeGreaterThan(0);
  expect((await service.kill('SIGTERM')).code).toBe(0);

  // Everything was written below DATA_DIR.
  const left = execFileSync('ls', ['-A', empty], { encoding: 'utf8' }).trim().split('\n');
  expect(left.toSorted()).toEqual(['data', 'node_modules', 'package-lock.json', 'package.json']);
});

async function rows(url: string, token: string): Promise<number> {
  const answer = await postJson(
    `${url}/v1/campaigns`,
    token,
    '{"start_time":"2000-01-01","end_time":"2100-01-01"}',
  );
  expect(answer.status).toBe(200);
  const { result } = (await answer.json()) as { result: { rows: unknown[] } };
  return result.rows.length;
}
