import { encoded, encodedKey } from './address.ts';
import type { Listing, ListPage, ObjectService } from './service.ts';
import { childrenOf, textOf, xmlOf } from './wire/xml.ts';

/** Version of the interface; any SAS of a later one is accepted, too. */
const version = '2021-12-02';

/** Azure Blob Storage with a shared access signature, which is part of every address: no message may show one. */
export class AzureService implements ObjectService {
  readonly word = 'container';
  readonly #base: string;
  readonly #sas: string;

  /** @param sas without a question mark before it */
  constructor(account: string, container: string, sas: string, endpoint?: URL) {
    const host = endpoint
      ? `${endpoint.href.replace(/\/$/, '')}/${account}`
      : `https://${account}.blob.core.windows.net`;
    this.#base = `${host}/${container}`;
    this.#sas = sas;
  }

  objectUrl(key: string): URL {
    return new URL(`${this.#base}/${encodedKey(key)}?${this.#sas}`);
  }

  listUrl({ prefix, flat, from }: Listing): URL {
    const query = [
      'restype=container&comp=list',
      `prefix=${encoded(prefix)}`,
      ...(flat ? ['delimiter=%2F'] : []),
      ...(from === undefined ? [] : [`marker=${encoded(from)}`]),
    ];
    return new URL(`${this.#base}?${query.join('&')}&${this.#sas}`);
  }

  async headers(_method: string, _url: URL, headers: Readonly<Record<string, string>>) {
    return { ...headers, 'x-ms-version': version, 'accept-encoding': 'identity' };
  }

  pageOf(xml: string): ListPage {
    const root = xmlOf(xml, 'EnumerationResults');
    const objects = childrenOf(childrenOf(root, 'Blobs')[0], 'Blob').flatMap((blob) => {
      const [name] = childrenOf(blob, 'Name');
      const [properties] = childrenOf(blob, 'Properties');
      // Of an account with a hierarchical namespace folders are listed, too.
      if (textOf(properties, 'ResourceType') === 'directory') return [];
      const key = name?.text ?? '';
      return {
        key: name?.attributes.Encoded === 'true' ? decodeURIComponent(key) : key,
        size: Number(textOf(properties, 'Content-Length')),
        etag: textOf(properties, 'Etag').replaceAll('"', ''),
        modified: new Date(textOf(properties, 'Last-Modified')),
      };
    });
    const next = textOf(root, 'NextMarker');
    return { objects, ...(next && { next }) };
  }
}
