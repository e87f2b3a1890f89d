import type { HttpBindings } from '@hono/node-server';

/** What middleware hands on to the handler of a request. */
export interface Edge {
  Bindings: HttpBindings;
  Variables: {
    requestId: string;
    /** The owner of everything the request may read. */
    account: string;
    /** Of the request, as it came. */
    body: string;
    /** Path of the endpoint, for logs and metrics; absent for unknown paths. */
    endpoint: string | undefined;
    /**
     * What is worth logging of a report. Not its rows: the database knows their number only after the headers of
     * its answer, and the bytes are passed on unread. `system.query_log` has `result_rows` by the query id.
     */
    report: { format: string; coding: string; query: string; first_byte_ms: number } | undefined;
  };
}
