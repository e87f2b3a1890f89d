import type { HttpBindings } from '@hono/node-server';

/** What middleware hands on to the handler of a request. */
export interface Edge {
  Bindings: HttpBindings;
  Variables: {
    requestId: string;
    /** The owner of everything the request may read. */
    account: string;
  };
}
