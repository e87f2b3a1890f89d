import type { HttpBindings } from '@hono/node-server';

/** What middleware hands on to the handler of a request. */
export interface HttpEnv {
  Bindings: HttpBindings;
  Variables: {
    requestId: string;
    /** The owner of everything the request may read. */
    account: string;
    /** Of the request, as it came. */
    body: string;
    /** Path of the endpoint, for logs and metrics; absent for unknown paths. */
    endpoint: string | undefined;
    /** What is worth logging of a report. Its rows are counted when it has ended. */
    report: { format: string; coding: string; query: string; first_byte_ms: number } | undefined;
  };
}
