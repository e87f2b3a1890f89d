import { ObjectStores } from '../../../ingest/objects/object-stores.ts';

/** Stores of objects with the keys of this process. @param say is told when one does not answer */
export function objectStores(endpoint: string | undefined, say: (text: string) => void): ObjectStores {
  const onRetry = (bucket: string, error: Error) =>
    say(`${bucket}: ${error.message}; retrying for two minutes`);
  return new ObjectStores({ env: process.env, endpoint, onRetry });
}
