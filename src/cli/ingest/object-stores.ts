import { ObjectStores } from '../../../ingest/objects/object-stores.ts';
import { say } from '../command/command.ts';

/** Stores of objects with the keys of this process. */
export function objectStores(endpoint: string | undefined): ObjectStores {
  const onRetry = (bucket: string, error: Error) =>
    say(`${bucket}: ${error.message}; retrying for two minutes`);
  return new ObjectStores({ env: process.env, endpoint, onRetry });
}
