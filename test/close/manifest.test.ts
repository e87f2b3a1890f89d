import { generateKeyPairSync } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, test } from 'vitest';
import { freePort } from '../../bench/harness/free-ports.ts';
import { catalog } from '../../catalog/catalog.ts';
import { select } from '../../clickhouse/client.ts';
import { createToken } from '../../src/accounts/tokens.ts';
import { manifestText } from '../../src/close/closes.ts';
import { checkManifest } from '../../src/close/manifest.ts';
import { keysOfSet, publicKeyOf, signatureOf } from '../../src/close/signature.ts';
import { verifyCloses } from '../../src/close/verify-closes.ts';
import { withReader } from '../../src/close/with-reader.ts';
import { keysOf } from '../../src/config/signing.ts';
import { close, useCloses } from '../support/closes.ts';
import { useCommandRunners } from '../support/command-runners.ts';
import { event, load } from '../support/events.ts';
import { useFolder } from '../support/folder.ts';
import { environmentOf, startProcess } from '../support/process.ts';
import { useService } from '../support/service.ts';
import { onEveryShard, useStore } from '../support/store.ts';

const pem = generateKeyPairSync('ed25519').privateKey.export({ format: 'pem', type: 'pkcs8' }).toString();
const retired = generateKeyPairSync('ed25519').publicKey.export({ format: 'pem', type: 'spki' }).toString();
const { signs: signingKey, publicKeys } = keysOf(pem);
const keys = publicKeys.map(publicKeyOf);

const db = useStore();
const service = useService(db, { SIGNING_KEY: pem + retired });
const closes = useCloses(db, service);
const runCommand = useCommandRunners();

const folder = useFolder();
const fileOf = (name: string, content: string | Buffer) => {
  writeFileSync(join(folder, name), content);
  return join(folder, name);
};

const account = 'señor';
let rows: Buffer;
let manifest: Buffer;
let revision = '';

beforeAll(async () => {
  const of = (fields: object) =>
    event({ advertiser_id: account, publisher_id: account, confirmed: true, ...fields });
  await load(db.store, [of({ spend: '0.1', quantity: 3 }), of({ spend: '0.2', device: 'tv' })]);
  await load(db.store, [of({ revenue: '123456789012.654321', event_time: '2026-03-31T00:00:00Z' })]);
  await close(db.store, '2026-03', account, { signingKey });
  const [closed] = await closes.of(account);
  if (!closed || !signingKey) throw new Error('nothing was closed');
  revision = closed.revision;
  rows = Buffer.from(await closes.textOf(closed));
  manifest = Buffer.from((await manifestText(db.store, { revision })) ?? '');
});

async function* bytesOf(text: Buffer) {
  yield text.subarray(0, 40);
  yield text.subarray(40);
}
const check = (text: Buffer, said: Buffer, by = keys) => checkManifest(bytesOf(text), said, by);

describe('a manifest', () => {
  test('has the sums and the loads of its month, and is signed', async () => {
    const [line = '', signature] = manifest.toString().split('\n');
    const said = JSON.parse(line);
    expect(said).toMatchObject({
      account_id: account,
      month: '2026-03',
      start_time: '2026-03-01',
      end_time: '2026-03-31',
      timezone: 'UTC',
      revision,
      previous: null,
      rows: rows.toString().trimEnd().split('\n').length - 1,
      signed_by: keys[0]?.kid,
      families: {
        campaigns: { totals: { impressions: '5', spent: '0.3' } },
        ad_units: { totals: { estimated_revenue: '123456789012.654321' } },
      },
    });
    const { parts } = said.families.campaigns;
    expect(parts.map(({ kind, events }: Record<string, string>) => [kind, events])).toEqual([
      ['events', '2'],
      ['events', '1'],
    ]);
    expect(new Set(parts.map(({ load }: Record<string, string>) => load)).size).toBe(2);
    expect(JSON.parse(signature ?? '')).toEqual({
      protected: expect.any(String),
      signature: expect.any(String),
    });
    expect(await check(rows, manifest)).toMatchObject({ signer: keys[0]?.kid });
  });

  test("is not believed when one of its bytes, or one of the rows', was changed", async () => {
    const changed = (bytes: Buffer, at: number) => {
      const copy = Buffer.from(bytes);
      copy.writeUInt8(bytes.readUInt8(at) ^ 1, at);
      return copy;
    };
    for (const at of manifest.keys()) await expect(check(rows, changed(manifest, at))).rejects.toThrow();
    for (const at of rows.keys()) await expect(check(changed(rows, at), manifest)).rejects.toThrow();
    expect(manifest.length).toBeGreaterThan(1_000);
  });

  test('that lost its signature, or has that of another key, is not believed', async () => {
    const [line = ''] = manifest.toString().split('\n');
    const unsigned = (text: string) => Buffer.from(`${text}\n`);
    const admitted = line.replace(/"signed_by":"[^"]*"/, '"signed_by":null');
    const others = keysOf(retired).publicKeys.map(publicKeyOf);
    await expect(check(rows, unsigned(line))).rejects.toThrow('its signature is missing');
    await expect(check(rows, unsigned(admitted))).rejects.toThrow('it is not signed');
    await expect(check(rows, manifest, others)).rejects.toThrow('is not among those that are given');
    const forged = others.map((other) => ({ ...other, kid: keys[0]?.kid ?? '' }));
    await expect(check(rows, manifest, forged)).rejects.toThrow('the signature is not that of the key');
    expect(await checkManifest(bytesOf(rows), unsigned(admitted))).not.toHaveProperty('signer');
  });

  test('is asked for by its account, with a token for both families, and no other', async () => {
    const ask = async (token: string) => {
      const headers = { authorization: `Bearer ${token}` };
      const answer = await fetch(`${service.url}/v1/closes/${revision}/manifest`, { headers });
      return [answer.status, await answer.text()];
    };
    expect(await ask(await service.token(account))).toEqual([200, manifest.toString()]);
    const one = await createToken(db.store, { account, label: '', family: 'campaigns' });
    expect((await ask(one))[0]).toBe(401);
    expect((await ask(await service.token('another')))[0]).toBe(404);
    const listed = await service.post('/v1/ad_units/closes', account, {
      start_time: '2026-02-20',
      end_time: '2026-03-01',
    });
    expect(await listed.json()).toMatchObject({
      result: { closes: [{ month: '2026-03', revision, previous: null, unconfirmed_revenue_dates: [] }] },
    });
  });
});

test('verify finds a manifest that was changed in the store', async () => {
  const verified = () => closes.verified(keys);
  expect(await verified()).toEqual([]);
  const change = (from: string, to: string) =>
    onEveryShard(db, `ALTER TABLE closes UPDATE manifest = replaceOne(manifest, '${from}', '${to}') WHERE 1`);
  await change('"spent":"0.3"', '"spent":"0.4"');
  expect(await verified()).toMatchObject([
    { what: expect.stringContaining('its manifest: the signature is not') },
  ]);
  await change('"spent":"0.4"', '"spent":"0.3"');
  expect(await verified()).toEqual([]);
});

test('keys that cannot be fetched are told with their address', async () => {
  const where = `http://127.0.0.1:${await freePort()}/keys`;
  const { code, stderr } = await runCommand(['check-manifest', 'rows', 'manifest', '--keys', where], {});
  expect([code, stderr]).toEqual([1, expect.stringContaining(`error: ${where}: connect ECONNREFUSED`)]);
});

test('commands, and a program in Python, check what the service says, by the keys that it publishes', async () => {
  const env = { ...environmentOf(db.address), SIGNING_KEY_FILE: fileOf('key.pem', pem) };
  const late = await runCommand(['close', `${account}-2`, '2026-03'], env);
  expect(late).toMatchObject({ code: 2, stderr: expect.stringContaining('has no rows in 2026-03') });
  const unnamed = await runCommand(['close', '', '2026-03'], env);
  expect(unnamed).toMatchObject({ code: 2, stderr: expect.stringContaining('account must have 1 to 128') });
  const empty = await runCommand(['close', '--all', '2019-01'], env);
  expect(empty.stderr).toBe('no account has rows in 2019-01: there is nothing to close\n');
  const printed = await runCommand(['closes', 'manifest', revision], env);
  expect(printed).toMatchObject({ code: 0, stdout: manifest.toString() });

  const address = `${service.url}/.well-known/jwks.json`;
  const set = await (await fetch(address)).text();
  expect(keysOfSet(set).map(({ kid }) => kid)).toEqual(
    keysOf(pem + retired).publicKeys.map((key) => publicKeyOf(key).kid),
  );
  const files = [fileOf('rows.ndjson', rows), fileOf('manifest.ndjson', manifest)];
  const other = fileOf('other.pem', retired);
  const wrong = fileOf('wrong.ndjson', rows.toString().replace('"spent":"0.1"', '"spent":"0.7"'));
  const checking = async (given: readonly string[], where?: string) => {
    const { code, stderr } = await runCommand(
      ['check-manifest', ...given, ...(where ? ['--keys', where] : [])],
      {},
    );
    return [code, stderr];
  };
  expect(await checking(files, address)).toEqual([
    0,
    expect.stringContaining(`signed with the key ${keys[0]?.kid}`),
  ]);
  expect(await checking(files, join(folder, 'key.pem'))).toEqual([0, expect.any(String)]);
  expect(await checking(files)).toEqual([0, expect.stringContaining('its signature was not checked')]);
  expect(await checking(files, other)).toEqual([
    1,
    expect.stringContaining('is not among those that are given'),
  ]);
  expect(await checking([wrong, files[1] ?? ''])).toEqual([
    1,
    expect.stringContaining('the rows have the sha256'),
  ]);

  const python = (given: readonly string[]) =>
    startProcess('python3', ['examples/check_manifest.py', ...given]).ended;
  const jwks = fileOf('jwks.json', set);
  expect(await python([...files, jwks])).toMatchObject({
    code: 0,
    stdout: `the rows fit; signed with the key ${keys[0]?.kid}\n`,
  });
  expect((await python([wrong, files[1] ?? '', jwks])).stderr).toContain('the rows have the sha256');

  const [line = '', signature = ''] = manifest.toString().split('\n');
  const all = keysOfSet(set);
  const [own, theirs] = all.map(({ kid }) => kid);
  const saysTheirs = line.replace(`"signed_by":"${own}"`, `"signed_by":"${theirs}"`);
  if (!signingKey || !own) throw new Error('there is no key');
  const signedBy = (text: string) => `${text}\n${signatureOf(Buffer.from(text), signingKey, own)}\n`;
  expect(await check(rows, Buffer.from(signedBy(line)), all)).toMatchObject({ signer: own });
  const admitted = line.replace(`"signed_by":"${own}"`, '"signed_by":null');
  const forgeries = Object.entries({
    'of another text': manifest.toString().replace('"rows":', '"rows": '),
    'with more behind': `${manifest}more\n`,
    'without its end': manifest.toString().trimEnd(),
    'without its signature': `${line}\n`,
    'with the name of another key': signedBy(saysTheirs),
    'signed, and saying that it is not': signedBy(admitted),
    'signed by nobody': `${admitted}\n`,
    'with a signature that is written otherwise': `${line}\n${signature.replace(',', ', ')}\n`,
  });
  for (const [what, text] of forgeries)
    await expect(check(rows, Buffer.from(text), all), what).rejects.toThrow();
  // As so many processes would say, in one.
  const believed = [
    'import contextlib, json, runpy, sys',
    'for sys.argv in json.load(sys.stdin):',
    '    with contextlib.suppress(SystemExit, Exception):',
    '        runpy.run_path(sys.argv[0])',
    '        print(sys.argv[2])',
  ].join('\n');
  const shown = [...forgeries.map(([what, text]) => fileOf(what, text)), files[1]];
  const calls = shown.map((each) => ['examples/check_manifest.py', files[0], each, jwks]);
  expect(await startProcess('python3', ['-c', believed], {}, JSON.stringify(calls)).ended).toMatchObject({
    code: 0,
    stdout: `the rows fit; signed with the key ${own}\n${files[1]}\n`,
  });
  const cut = [files[0] ?? '', fileOf('cut.ndjson', `${line}\n`)];
  expect(await checking(cut)).toEqual([1, expect.stringContaining('its signature is missing')]);
  expect((await python(cut)).stderr).toContain('its signature is missing');
  const unsigned = [files[0] ?? '', fileOf('unsigned.ndjson', `${admitted}\n`)];
  expect(await checking(unsigned)).toEqual([0, expect.stringContaining('it is not signed')]);
  expect((await python(unsigned)).stdout).toBe('the rows fit; nobody signed\n');

  const missing = join(folder, 'missing');
  for (const given of [
    [missing, files[1] ?? ''],
    [files[0] ?? '', missing],
    [missing, missing],
  ]) {
    expect(await checking(given)).toEqual([1, `error: ${missing}: there is no such file\n`]);
  }
  for (const given of [
    [folder, files[1] ?? ''],
    [files[0] ?? '', folder],
  ])
    expect(await checking(given)).toEqual([1, `error: ${folder}: it is a folder\n`]);
});

test('verify asks for the key of a manifest, and for a backup where closed rows have changed, whose months it counts once', async () => {
  const verified = async (given: string) => {
    const env = { ...environmentOf(db.address), SIGNING_KEY: given };
    const { code, stderr } = await runCommand(['verify'], env);
    return [code, stderr.match(/^.*closed month.*$/gm)];
  };
  expect(await verified(pem + retired)).toEqual([0, null]);
  const key =
    'the manifest of 1 closed month cannot be checked; give the public key that signed it behind that of SIGNING_KEY, and where that does not help restore it from a backup';
  expect(await verified(retired)).toEqual([1, [key]]);
  const change = (spent: string) =>
    onEveryShard(db, `ALTER TABLE campaigns_closed UPDATE spent = ${spent} WHERE 1`);
  await change('spent + 1');
  const rows = 'rows of 1 closed month have changed; restore them from a backup';
  expect(await verified(retired)).toEqual([1, [rows, key]]);
  await change('spent - 1');
});

test('verify finds a manifest that was emptied in the store', async () => {
  await onEveryShard(db, "ALTER TABLE closes UPDATE manifest = '' WHERE 1");
  expect(await closes.verified(keys)).toMatchObject([{ what: 'its manifest: it is no manifest of a close' }]);
});

test('a close says that nobody signs it where there is no private key', async () => {
  for (const advertiser_id of ['unsigned', 'signed'])
    await load(db.store, [event({ advertiser_id, confirmed: true })]);
  const said = async (of: string, given: string) => {
    const env = { ...environmentOf(db.address), SIGNING_KEY: given };
    return (await runCommand(['close', of, '2026-03', '--anyway'], env)).stderr;
  };
  expect(await said('unsigned', retired)).toBe('closed unsigned 2026-03: 1 row, not signed\n');
  expect(await said('signed', pem)).toBe('closed signed 2026-03: 1 row\n');
});

test('a day that is unconfirmed in both families is one day, for a close and in the list', async () => {
  const both = { advertiser_id: 'both', publisher_id: 'both', spend: '1', revenue: '1' };
  await load(db.store, [event(both)]);
  const run = (...args: string[]) => runCommand(args, environmentOf(db.address));
  expect((await run('close', 'both', '2026-03')).stderr).toContain('is not closed: 1 day unconfirmed');
  await run('close', 'both', '2026-03', '--anyway');
  expect((await run('closes', 'both')).stdout).toContain('\t1 day unconfirmed\t');
});

test('to verify a close reads nothing of those of other accounts', async () => {
  const others = 100_000;
  const [at] = await select<{ began: string }>(db.store, 'SELECT toString(now64(6)) AS began');
  await db.store.command({
    query: `INSERT INTO closes (account_id, month, revision) SELECT concat('a', toString(number)), 209901, toString(number) FROM numbers(${others})`,
  });
  await withReader(db.store, (reader) =>
    verifyCloses(db.store, reader, catalog, { from: '2026-03-01', to: '2026-03-31' }),
  );
  await db.store.command({ query: 'SYSTEM FLUSH LOGS query_log' });
  const [read] = await select<{ statements: number; most: number }>(
    db.store,
    `SELECT toUInt32(count()) AS statements, toUInt32(max(read_rows)) AS most FROM system.query_log
     WHERE type = 'QueryFinish' AND current_database = currentDatabase() AND startsWith(query, 'SELECT manifest')
       AND event_time_microseconds > toDateTime64({began:String}, 6)`,
    { ...at },
  );
  expect(read?.statements).toBeGreaterThan(0);
  expect(read?.most).toBeLessThan(others / 2);
});
