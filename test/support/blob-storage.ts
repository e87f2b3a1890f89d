import { createHash } from 'node:crypto';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll } from 'vitest';

/**
 * What adtally asks of Azure Blob Storage, by its documentation: pages of a listing, HEAD, ranges, If-Match, and a signature in
 * the address. No part of the real thing.
 */
export function useBlobStorage(account: string, container: string, sas: string) {
  const blobs = new Map<string, Buffer>();
  /** As an account with a hierarchical namespace has them: listed and found as empty blobs. */
  const folders = new Set<string>();
  const contentOf = (name: string) => (folders.has(name) ? Buffer.alloc(0) : blobs.get(name));
  const etag = (content: Buffer) => `0x${createHash('md5').update(content).digest('hex').toUpperCase()}`;
  const server = createServer((request, response) => {
    const { pathname, searchParams } = new URL(request.url ?? '', 'http://localhost');
    const refuse = (status: number, code: string) => {
      response.writeHead(status, { 'x-ms-error-code': code });
      response.end(request.method === 'HEAD' ? '' : `<Error><Code>${code}</Code></Error>`);
    };
    if (new URLSearchParams(sas).get('sig') !== searchParams.get('sig'))
      return refuse(403, 'AuthenticationFailed');
    if (!request.headers['x-ms-version']) return refuse(400, 'MissingRequiredHeader');
    const [, ofAccount, ofContainer, ...key] = pathname.split('/').map(decodeURIComponent);
    if (ofAccount !== account || ofContainer !== container) return refuse(404, 'ContainerNotFound');
    if (searchParams.get('comp') === 'list') {
      const prefix = searchParams.get('prefix') ?? '';
      const flat = searchParams.has('delimiter');
      const names = [...blobs.keys(), ...folders]
        .sort()
        .filter((name) => name.startsWith(prefix) && !(flat && name.slice(prefix.length).includes('/')));
      const from = Number(searchParams.get('marker') ?? 0);
      const page = names.slice(from, from + 2).map((name) => {
        const content = contentOf(name) ?? Buffer.alloc(0);
        const type = folders.has(name) ? 'directory' : 'file';
        return `<Blob><Name>${name.replaceAll('&', '&amp;')}</Name><Properties><Last-Modified>Sun, 01 Mar 2026 12:00:00 GMT</Last-Modified><Etag>${etag(content)}</Etag><ResourceType>${type}</ResourceType><Content-Length>${content.length}</Content-Length></Properties></Blob>`;
      });
      const next = from + 2 < names.length ? from + 2 : '';
      return void response.end(
        `\ufeff<?xml version="1.0" encoding="utf-8"?><EnumerationResults><Blobs>${page.join('')}</Blobs><NextMarker>${next}</NextMarker></EnumerationResults>`,
      );
    }
    const content = contentOf(key.join('/'));
    if (!content) return refuse(404, 'BlobNotFound');
    const tag = `"${etag(content)}"`;
    if (request.headers['if-match'] && request.headers['if-match'] !== tag)
      return refuse(412, 'ConditionNotMet');
    const [, start, end] = /^bytes=(\d+)-(\d+)$/.exec(request.headers.range ?? '') ?? [];
    const part = start === undefined ? content : content.subarray(Number(start), Number(end) + 1);
    response.writeHead(start === undefined ? 200 : 206, {
      ...{ etag: tag, 'content-length': part.length, 'last-modified': 'Sun, 01 Mar 2026 12:00:00 GMT' },
      ...(folders.has(key.join('/')) && { 'x-ms-meta-hdi_isfolder': 'true' }),
      ...(start !== undefined && { 'content-range': `bytes ${start}-${end}/${content.length}` }),
    });
    response.end(request.method === 'HEAD' ? undefined : part);
  });
  beforeAll(() => new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve)));
  afterAll(() => {
    server.closeAllConnections();
    server.close();
  });
  return {
    blobs,
    folders,
    get endpoint() {
      return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    },
  };
}
