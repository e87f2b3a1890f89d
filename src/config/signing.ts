import { createPrivateKey, createPublicKey, type KeyObject } from 'node:crypto';
import * as z from 'zod';

/** Environment variables of signatures; each message completes the sentence that begins with the variable and its value. */
export const signingVariables = {
  SIGNING_KEY: z.string().transform(readKeys).optional(),
};

/** Keys (Ed25519) that say who closed a month. */
export interface SigningKeys {
  /** Absent: this process signs nothing. */
  readonly signs?: KeyObject;
  /** Of today and of earlier, which check what is signed. */
  readonly publicKeys: readonly KeyObject[];
}

/** The keys in PEM: a private one that comes first signs. @throws where there is another kind of key, or none */
export function keysOf(pem: string): SigningKeys {
  const keys = pem.match(/-----BEGIN (PRIVATE|PUBLIC) KEY-----[^-]+-----END \1 KEY-----/g) ?? [];
  const publicKeys = keys.map((key) => createPublicKey(key));
  if (publicKeys.length === 0 || publicKeys.some(({ asymmetricKeyType }) => asymmetricKeyType !== 'ed25519'))
    throw new Error('no Ed25519 keys in PEM');
  const [first = ''] = keys;
  return { publicKeys, ...(first.includes('PRIVATE') && { signs: createPrivateKey(first) }) };
}

function readKeys(pem: string, context: z.RefinementCtx): SigningKeys {
  try {
    return keysOf(pem);
  } catch {
    context.addIssue({ code: 'custom', message: 'has no keys of Ed25519 in PEM, or others beside them' });
    return z.NEVER;
  }
}
