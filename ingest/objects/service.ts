/** An object as its store describes it. */
export interface ObjectVersion {
  readonly key: string;
  /** Bytes. */
  readonly size: number;
  /** What differs where the content does, without quotes around it. */
  readonly etag: string;
  /** When it was written, by the clock of the store. */
  readonly modified: Date;
}

export interface ListPage {
  readonly objects: readonly ObjectVersion[];
  /** What the next page begins with; absent on the last one. */
  readonly next?: string;
}

export interface Listing {
  readonly prefix: string;
  /** Only keys without another slash behind the prefix. */
  readonly flat: boolean;
  /** Of the page before. */
  readonly from?: string;
}

/** How a kind of store is asked. */
export interface ObjectService {
  /** What this service calls a bucket. */
  readonly word: 'bucket' | 'container';
  objectUrl(key: string): URL;
  listUrl(listing: Listing): URL;
  /** Headers that let a request pass. @throws where there are no keys to sign with */
  headers(
    method: string,
    url: URL,
    headers: Readonly<Record<string, string>>,
  ): Promise<Record<string, string>>;
  pageOf(xml: string): ListPage;
  /** Whether the same request may pass now: with new keys, or in the region that the answer names. Absent: it may not. */
  mayPassNow?(refusal: Refusal): Promise<boolean>;
}

/** An answer that is no success. */
export interface Refusal {
  readonly status: number;
  /** What the store calls the reason; empty where it does not say. */
  readonly code: string;
  /** The region that the bucket is in, where the answer says so. */
  readonly region?: string;
}
