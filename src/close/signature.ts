import { createHash, createPublicKey, type KeyObject, sign, verify } from 'node:crypto';
import * as z from 'zod';
import { jsonIn } from '../../ingest/input/text.ts';

/** A public key as a JWKS has it (RFC 7517, RFC 8037). */
const publicKey = z.object({
  kty: z.literal('OKP'),
  crv: z.literal('Ed25519'),
  x: z.string(),
  kid: z.string(),
});

export type PublicKey = z.infer<typeof publicKey>;

/** The keys of a JWKS, such as `/.well-known/jwks.json`; those of other kinds are passed over. @throws where it is none */
export function keysOfSet(text: string): PublicKey[] {
  const { keys } = z.object({ keys: z.array(z.unknown()) }).parse(JSON.parse(text));
  return keys.flatMap((key) => publicKey.safeParse(key).data ?? []);
}

/** The key, named by its thumbprint (RFC 7638). */
export function publicKeyOf(key: KeyObject): PublicKey {
  const { x = '' } = key.export({ format: 'jwk' });
  const thumbprint = JSON.stringify({ crv: 'Ed25519', kty: 'OKP', x });
  const kid = createHash('sha256').update(thumbprint).digest('base64url');
  return { kty: 'OKP', crv: 'Ed25519', x, kid };
}

const signature = z.strictObject({ protected: z.string(), signature: z.string() });
const header = z.strictObject({ alg: z.literal('EdDSA'), kid: z.string() });

/** A JSON Web Signature of the bytes (RFC 7515, flattened, with the payload detached), as one line. */
export function signatureOf(payload: Buffer, key: KeyObject, kid: string): string {
  const head = Buffer.from(JSON.stringify({ alg: 'EdDSA', kid })).toString('base64url');
  const signed = sign(null, signedBytes(head, payload), key).toString('base64url');
  return JSON.stringify({ protected: head, signature: signed });
}

/**
 * Whose signature the line is.
 * @returns the name of the key
 * @throws where it is no such signature, none of the keys is its key, or it is of other bytes
 */
export function checkSignature(payload: Buffer, line: string, keys: readonly PublicKey[]): string {
  const { data } = signature.safeParse(jsonIn(line));
  const head = header.safeParse(data && jsonIn(Buffer.from(data.protected, 'base64url').toString())).data;
  // One way to write a signature: decoders pass over bits that mean nothing.
  const isPlain = (text: string) => Buffer.from(text, 'base64url').toString('base64url') === text;
  if (!data || !head || JSON.stringify(data) !== line || !isPlain(data.signature) || !isPlain(data.protected))
    throw new Error('what follows the first line is no signature');
  const key = keys.find(({ kid }) => kid === head.kid);
  if (!key) throw new Error(`the key ${head.kid} is not among those that are given`);
  const { kid: _, ...jwk } = key;
  const against = createPublicKey({ key: jwk, format: 'jwk' });
  const bytes = Buffer.from(data.signature, 'base64url');
  if (!verify(null, signedBytes(data.protected, payload), against, bytes))
    throw new Error(`the signature is not that of the key ${head.kid} for these bytes`);
  return head.kid;
}

const signedBytes = (head: string, payload: Buffer) =>
  Buffer.from(`${head}.${payload.toString('base64url')}`, 'ascii');
