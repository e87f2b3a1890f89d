import { AwsV4Signer } from 'aws4fetch';
import { encoded, encodedKey } from './address.ts';
import type { KeptKeys } from './keys/keys.ts';
import type { Listing, ListPage, ObjectService, Refusal } from './service.ts';
import { childrenOf, textOf, xmlOf } from './wire/xml.ts';

export interface S3Options {
  readonly bucket: string;
  /** Absent: that of AWS in the region. */
  readonly endpoint?: URL | undefined;
  readonly region: string;
  readonly keys: KeptKeys;
  /** `gzip` keeps Google from unpacking what an object says it is packed with. */
  readonly acceptEncoding: 'identity' | 'gzip';
}

const namesRegion = /^[a-z0-9-]{1,32}$/;
/** Keys that are too old, or that somebody has changed for others. */
const notAccepted =
  /^(ExpiredToken|InvalidToken|TokenRefreshRequired|InvalidAccessKeyId|SignatureDoesNotMatch)$/;

/** Amazon S3, what speaks its language, and Google Cloud Storage by its XML interface. */
export class S3Service implements ObjectService {
  readonly word = 'bucket';
  readonly #options: S3Options;
  #region: string;
  /** Keys that signatures of this day are made with. */
  readonly #signing = new Map<string, ArrayBuffer>();

  constructor(options: S3Options) {
    this.#options = options;
    this.#region = options.region;
  }

  objectUrl(key: string): URL {
    return new URL(`${this.#base}/${encodedKey(key)}`);
  }

  listUrl({ prefix, flat, from }: Listing): URL {
    const query = [
      'list-type=2',
      'encoding-type=url',
      `prefix=${encoded(prefix)}`,
      ...(flat ? ['delimiter=%2F'] : []),
      ...(from === undefined ? [] : [`continuation-token=${encoded(from)}`]),
    ];
    return new URL(`${this.#base}/?${query.join('&')}`);
  }

  async headers(
    method: string,
    url: URL,
    headers: Readonly<Record<string, string>>,
  ): Promise<Record<string, string>> {
    const { keys, acceptEncoding } = this.#options;
    const signer = new AwsV4Signer({
      ...{ method, url: url.href, headers, service: 's3', region: this.#region, cache: this.#signing },
      ...(await keys.get()),
    });
    const signed = await signer.sign();
    // Not signed: proxies change it.
    return { ...Object.fromEntries(signed.headers), 'accept-encoding': acceptEncoding };
  }

  pageOf(xml: string): ListPage {
    const root = xmlOf(xml, 'ListBucketResult');
    const decoded = textOf(root, 'EncodingType') === 'url' ? decodedKey : (key: string) => key;
    const objects = childrenOf(root, 'Contents').map((entry) => ({
      key: decoded(textOf(entry, 'Key')),
      size: Number(textOf(entry, 'Size')),
      etag: textOf(entry, 'ETag').replaceAll('"', ''),
      modified: new Date(textOf(entry, 'LastModified')),
    }));
    if (textOf(root, 'IsTruncated') !== 'true') return { objects };
    const next = textOf(root, 'NextContinuationToken');
    // A store that knows only the first version of listings goes on in another way.
    if (next === '')
      throw new Error(
        'the storage says that its listing goes on, but gives no NextContinuationToken: it does not know ListObjectsV2',
      );
    return { objects, next };
  }

  async mayPassNow({ status, code, region }: Refusal): Promise<boolean> {
    if (notAccepted.test(code)) {
      this.#options.keys.letGo();
      return true;
    }
    const elsewhere = status === 301 || status === 307 || status === 400;
    if (!elsewhere || !region || region === this.#region || !namesRegion.test(region)) return false;
    this.#region = region;
    return true;
  }

  get #base(): string {
    const { endpoint, bucket } = this.#options;
    return bucketAddress(bucket, endpoint?.href, this.#region);
  }
}

/** Where a bucket is. @param endpoint absent: that of AWS @param region absent: AWS finds it */
export function bucketAddress(bucket: string, endpoint?: string, region?: string): string {
  if (endpoint) return `${endpoint.replace(/\/$/, '')}/${bucket}`;
  const host = `s3${region ? `.${region}` : ''}.amazonaws.com${region?.startsWith('cn-') ? '.cn' : ''}`;
  // A certificate of AWS is not valid for names with dots in the bucket.
  const isHostName = /^[a-z0-9][a-z0-9-]{1,61}[a-z0-9]$/.test(bucket);
  return isHostName ? `https://${bucket}.${host}` : `https://${host}/${bucket}`;
}

const decodedKey = (key: string) => decodeURIComponent(key.replaceAll('+', ' '));
