import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { beforeEach, expect, test } from 'vitest';
import { KeptKeys } from '../../../ingest/objects/keys/keys.ts';
import { ObjectStores } from '../../../ingest/objects/object-stores.ts';
import { S3Service } from '../../../ingest/objects/s3.ts';
import { expandFiles } from '../../../ingest/places/expand-files.ts';
import { useObjectStorage } from '../../support/object-storage.ts';

/** Which machine is asked, and for which key, is for the command to say alone. */

const storage = useObjectStorage('events');
beforeEach(() => storage.reset());
const address = (path: string) => `s3://${storage.bucket}/${path}`;
const found = (arg: string) =>
  expandFiles([arg], new ObjectStores({ env: storage.keys, endpoint: storage.endpoint }));

test('no redirect is followed, and nothing of a request goes to another address', async () => {
  let reached = 0;
  const elsewhere = createServer((_, response) => {
    reached++;
    response.end();
  });
  await new Promise<void>((resolve) => void elsewhere.listen(0, '127.0.0.1', resolve));
  const location = `http://127.0.0.1:${(elsewhere.address() as AddressInfo).port}/latest/meta-data/`;
  try {
    for (const status of [301, 302, 307]) {
      const headers = { location, 'x-amz-bucket-region': '127.0.0.1/' };
      storage.meet(() => ({ status, code: 'TemporaryRedirect', headers }));
      await expect(found(address('*'))).rejects.toThrow(/another address, which is not followed/);
    }
    expect(reached).toBe(0);
  } finally {
    elsewhere.close();
  }
});

test.each(['{"SecretAccessKey":"hidden"}', '<html><p>hidden</p></html>'])(
  'an address that answers with %s is no store, and nothing of the answer is told',
  async (body) => {
    storage.meet(() => ({ body }));
    const failed = found(address('*'));
    await expect(failed).rejects.toThrow(
      `${address('*')}: the answer is no ListBucketResult: is this address that of a store of objects?`,
    );
    await expect(failed).rejects.not.toThrow(/hidden/);
  },
);

test('a key whose parts would lead elsewhere is not read, and no bucket is a host', async () => {
  const elsewhere = address('x/../a.ndjson');
  await expect(found(elsewhere)).rejects.toThrow(`${elsewhere}: a part of the key is . or ..`);
  expect(storage.asked).toEqual([]);
  const keys = new KeptKeys(async () => ({ accessKeyId: 'a', secretAccessKey: 'b' }));
  const more = { region: 'eu-west-1', keys, acceptEncoding: 'identity' } as const;
  const url = new S3Service({ bucket: '169.254.169.254', ...more }).objectUrl('latest/meta-data/');
  expect(url.host).toBe('s3.eu-west-1.amazonaws.com');
});

test('of more objects than a page has all are found, and read by their names', async () => {
  const odd = ['a b', 'a+b', 'a%2Fb', 'ü 夏 😀', `'"&<>`, 'x;y=z?q#r', '~!@$^*(){}[]|`,', '...'];
  const names = [...Array.from({ length: 1_001 }, (_, n) => `${n}`), ...odd.map((name) => `n${name}`)];
  const keys = names.map((name) => `many/${name}.ndjson`);
  for (let at = 0; at < keys.length; at += 50) {
    await Promise.all(keys.slice(at, at + 50).map((key) => storage.put(key, key)));
  }
  storage.reset();
  const listed = await found(address('many/'));
  expect(listed.map(({ name }) => name)).toEqual(keys.map((key) => `s3://${storage.bucket}/${key}`).sort());
  expect(storage.asked.length).toBe(2);
  for (const input of listed.slice(-odd.length)) {
    const { whole } = await input.readFrom(0);
    expect(input.name).toBe(`s3://${storage.bucket}/${whole}`);
  }
});

test('an object whose name looks like a pattern is that object alone, and nothing is all but what is named', async () => {
  const keys = ['odd/a[1].ndjson', 'odd/a1.ndjson', 'odd/b (1).ndjson', 'odd/b 1.ndjson', '!x.ndjson'];
  await Promise.all(keys.map((key) => storage.put(key, key)));
  const names = async (path: string) => (await found(address(path))).map(({ name }) => name);
  for (const key of keys) expect(await names(key)).toEqual([address(key)]);
  expect(await names('odd/a[12].ndjson')).toEqual([address('odd/a1.ndjson')]);
  expect(await names('!x*')).toEqual([address('!x.ndjson')]);
  await expect(names('!y.ndjson')).rejects.toThrow(/no file there/);
});

test.each(['s3://', 's3://-/x', 's3://../x', 'az://account', 'gs:///x', 'az://user@host:80/c/x'])(
  '%s is no address',
  async (arg) => {
    await expect(found(arg)).rejects.toThrow(`${arg}: is no address of objects; give ${arg.slice(0, 5)}`);
  },
);
