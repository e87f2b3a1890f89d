import picomatch from 'picomatch';
import { isDynamicPattern } from 'tinyglobby';
import { naming } from '../input/input-error.ts';
import type { ObjectAddress } from './address.ts';
import { AzureService } from './azure.ts';
import { Bucket } from './bucket.ts';
import { awsKeys, googleKeys } from './keys/aws-keys.ts';
import { regionOf } from './keys/profile.ts';
import { ObjectInput } from './object-input.ts';
import { S3Service } from './s3.ts';
import type { ObjectService } from './service.ts';
import type { PatienceOptions } from './wire/patience.ts';

export interface ObjectStoresOptions extends Omit<PatienceOptions, 'onRetry'> {
  /** Has the keys. */
  readonly env: NodeJS.ProcessEnv;
  /** A store other than that of the provider; buckets are parts of its paths. */
  readonly endpoint?: string | undefined;
  /** Called with the address of a bucket when its store does not answer. */
  readonly onRetry?: (bucket: string, error: Error) => void;
}

/** Buckets by their addresses. Which machines are asked depends on the command and its environment alone. */
export class ObjectStores {
  readonly #options: ObjectStoresOptions;
  readonly #buckets = new Map<string, Promise<Bucket>>();

  constructor(options: ObjectStoresOptions) {
    this.#options = options;
  }

  /** The objects that an address stands for, in the order of their names. @throws {InputError} that names it */
  async expand(arg: string, address: ObjectAddress, signal?: AbortSignal): Promise<ObjectInput[]> {
    const found = await naming(arg, async () =>
      objectsOf(await this.#bucketOf(address), address.path, signal),
    );
    return found.sort((a, b) => (a.name < b.name ? -1 : 1));
  }

  #bucketOf(address: ObjectAddress): Promise<Bucket> {
    const name = `${address.scheme}://${address.bucket}/`;
    const known = this.#buckets.get(name);
    if (known) return known;
    const { onRetry, ...options } = this.#options;
    const made = serviceOf(address, options).then(
      (service) => new Bucket(name, service, { ...options, onRetry: (error) => onRetry?.(name, error) }),
    );
    this.#buckets.set(name, made);
    return made;
  }
}

async function serviceOf(
  { scheme, bucket }: ObjectAddress,
  { env, endpoint: given }: ObjectStoresOptions,
): Promise<ObjectService> {
  switch (scheme) {
    case 'az': {
      const [account = '', container = ''] = bucket.split('/');
      const sas = (env.AZURE_STORAGE_SAS_TOKEN ?? '').replace(/^\?/, '');
      if (!sas)
        throw new Error('set AZURE_STORAGE_SAS_TOKEN to a shared access signature that may read and list');
      return new AzureService(account, container, sas, endpointOf(given));
    }
    case 'gs': {
      const endpoint = endpointOf(given ?? 'https://storage.googleapis.com');
      const keys = googleKeys(env);
      return new S3Service({ bucket, endpoint, keys, region: 'auto', acceptEncoding: 'gzip' });
    }
    case 's3': {
      const region = await regionOf(env);
      const endpoint = endpointOf(given ?? (env.AWS_ENDPOINT_URL_S3 || env.AWS_ENDPOINT_URL || undefined));
      const keys = awsKeys(env, region);
      return new S3Service({ bucket, endpoint, keys, region, acceptEncoding: 'identity' });
    }
  }
}

/** @throws for what is no address, or has more than one */
export function endpointOf(text: string | undefined): URL | undefined {
  if (text === undefined) return undefined;
  const url = URL.canParse(text) ? new URL(text) : undefined;
  const isAddress =
    url && /^https?:$/.test(url.protocol) && url.username + url.password + url.search + url.hash === '';
  // What is no address may hold a password.
  if (!isAddress) throw new Error('the endpoint is no address such as https://storage.example.com');
  return url;
}

async function objectsOf(bucket: Bucket, path: string, signal?: AbortSignal): Promise<ObjectInput[]> {
  const isPattern = isDynamicPattern(path);
  // A name may look like a pattern, as names of files may. Most patterns have a star and hardly any name has: those are only listed.
  if (path !== '' && !path.endsWith('/') && !path.includes('*')) {
    const found = await bucket.find(path, signal).catch((error: unknown) => {
      // A store may refuse to say that one key is not there. Then the listing tells.
      if (!isPattern || signal?.aborted) throw error;
      return undefined;
    });
    if (found) return [new ObjectInput(bucket, found)];
  }
  const folder = path === '' || path.endsWith('/') ? path : `${path}/`;
  // As of files, a pattern leads through folders, and a star does not stand for a name that begins with a dot.
  const matches = isPattern
    ? picomatch(path, { nonegate: true })
    : (key: string) => !key.slice(folder.length).startsWith('.');
  const prefix = isPattern ? (/^[^*?[\]{}()!+@\\]*/.exec(path)?.[0] ?? '') : folder;
  const flat = !/\/|\*\*/.test(path.slice(prefix.length));
  const found: ObjectInput[] = [];
  for await (const object of bucket.list(prefix, flat, signal)) {
    // Consoles make an empty object for a folder.
    if (object.key.endsWith('/') || !(matches(object.key) || object.key === path)) continue;
    found.push(new ObjectInput(bucket, object));
  }
  return found;
}
