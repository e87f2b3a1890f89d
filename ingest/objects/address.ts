import { InputError } from '../input/input-error.ts';

/** Where objects are. */
export interface ObjectAddress {
  readonly scheme: 's3' | 'gs' | 'az';
  /** A bucket; of Azure `ACCOUNT/CONTAINER`. */
  readonly bucket: string;
  /** A key, or a pattern of keys; empty: all that is directly in the bucket. */
  readonly path: string;
}

const forms = {
  s3: { pattern: /^([A-Za-z0-9][\w.-]+)(?:\/(.*))?$/s, shown: 's3://BUCKET/PATH' },
  gs: { pattern: /^([A-Za-z0-9][\w.-]+)(?:\/(.*))?$/s, shown: 'gs://BUCKET/PATH' },
  // The account is part of a host name.
  az: { pattern: /^([a-z0-9]{3,24}\/[\w$-]+)(?:\/(.*))?$/s, shown: 'az://ACCOUNT/CONTAINER/PATH' },
} as const;

/** What an argument that begins with `s3://`, `gs://` or `az://` names; undefined for any other. @throws {InputError} */
export function objectAddress(text: string): ObjectAddress | undefined {
  const [, scheme, rest = ''] = /^(s3|gs|az):\/\/(.*)$/s.exec(text) ?? [];
  if (scheme !== 's3' && scheme !== 'gs' && scheme !== 'az') return undefined;
  const { pattern, shown } = forms[scheme];
  const [, bucket, path = ''] = pattern.exec(rest) ?? [];
  if (bucket === undefined) throw new InputError(`${text}: is no address of objects; give ${shown}`);
  return { scheme, bucket, path };
}

/** A key as a part of an address. @throws {InputError} without the name, for a key that no address can have */
export function encodedKey(key: string): string {
  const parts = key.split('/');
  if (parts.some((part) => part === '.' || part === '..')) {
    throw new InputError('a part of the key is . or .., which no address can have: rename the object');
  }
  return parts.map((part) => encoded(part)).join('/');
}

/** As RFC 3986 has it, which is what signatures are made of. */
export function encoded(text: string): string {
  return encodeURIComponent(text).replace(
    /[!'()*]/g,
    (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`,
  );
}
