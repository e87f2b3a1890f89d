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

/** The keys in PEM: a private one signs, and is the first. @throws where that is not so, there is another kind of key, or none */
export function keysOf(pem: string): SigningKeys {
  const keys = pem.match(/-----BEGIN (PRIVATE|PUBLIC) KEY-----[^-]+-----END \1 KEY-----/g) ?? [];
  const publicKeys = keys.map((key) => createPublicKey(key));
  if (publicKeys.length === 0 || publicKeys.some(({ asymmetricKeyType }) => asymmetricKeyType !== 'ed25519'))
    throw new Error('no Ed25519 keys in PEM');
  const [first = '', ...others] = keys;
  const isPrivate = (key: string) => key.includes('PRIVATE');
  // One that is not read would sign nothing without a word.
  if (pem.split('-----BEGIN').length - 1 !== keys.length || others.some(isPrivate))
    throw new Error('other keys beside them, or a private one that is not the first');
  return { publicKeys, ...(isPrivate(first) && { signs: createPrivateKey(first) }) };
}

function readKeys(pem: string, context: z.RefinementCtx): SigningKeys {
  try {
    return keysOf(pem);
  } catch {
    context.addIssue({
      code: 'custom',
      message: 'has no keys of Ed25519 in PEM, others beside them, or a private one that is not the first',
    });
    return z.NEVER;
  }
}
