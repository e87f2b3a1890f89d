import { createHash, createHmac } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';

interface SignedRequest {
  readonly method: string;
  /** As it was sent, with its query. */
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
}

/** Whether a request carries the signature (version 4) that this secret gives it, computed from what was sent. */
export function isSigned({ method, path, headers }: SignedRequest, secret: string): boolean {
  const form =
    /^AWS4-HMAC-SHA256 Credential=[^/]+\/((\d{8})\/([\w-]+)\/s3\/aws4_request), SignedHeaders=([\w;-]+), Signature=(\w+)$/;
  const [, scope = '', day = '', region = '', names = '', signature] =
    form.exec(headers.authorization ?? '') ?? [];
  const [resource = '', query = ''] = path.split('?');
  const encoded = (text: string) =>
    encodeURIComponent(decodeURIComponent(text)).replace(
      /[!'()*]/g,
      (letter) => `%${letter.charCodeAt(0).toString(16).toUpperCase()}`,
    );
  const parameters = query
    .split('&')
    .filter(Boolean)
    .map((pair) => {
      const [name = '', value = ''] = pair.split('=');
      return `${encoded(name)}=${encoded(value)}`;
    });
  const signed = names.split(';');
  const canonical = [
    method,
    resource.split('/').map(encoded).join('/'),
    parameters.sort().join('&'),
    ...signed.map((name) => `${name}:${String(headers[name]).trim()}`),
    '',
    names,
    headers['x-amz-content-sha256'],
  ].join('\n');
  const hash = createHash('sha256').update(canonical).digest('hex');
  const text = ['AWS4-HMAC-SHA256', headers['x-amz-date'], scope, hash].join('\n');
  const hmac = (key: string | Buffer, data: string) => createHmac('sha256', key).update(data).digest();
  const key = [day, region, 's3', 'aws4_request'].reduce<string | Buffer>(hmac, `AWS4${secret}`);
  const mustBe = ['host', 'x-amz-date', 'x-amz-content-sha256'];
  if (headers['x-amz-security-token'] !== undefined) mustBe.push('x-amz-security-token');
  return mustBe.every((name) => signed.includes(name)) && hmac(key, text).toString('hex') === signature;
}
