import type { HttpBindings } from '@hono/node-server';
import type { RowCount } from '../../report/kept/memory.ts';
import type { Refusal } from './login.ts';

/** Hono's environment: what middleware passes to the handler of a request. */
export interface HttpEnv {
  Bindings: HttpBindings;
  Variables: {
    requestId: string;
    /** The owner of everything the request may read. */
    account: string;
    /** The id of the login token. */
    token: string | undefined;
    /** The subject, as the provider calls the person who signed in; absent for tokens. */
    person: string | undefined;
    /** The only family that the login opens; null: all of the account. */
    onlyFamily: string | null;
    /** Why a login was refused. */
    refused: Refusal | undefined;
    /** The address of the caller, behind trusted proxies. */
    address: string;
    /** The trace context that a trusted proxy sent. */
    traceparent: string | undefined;
    /** The request body, unparsed. */
    body: string;
    /** Path of the endpoint, for logs and metrics; absent for unknown paths. */
    endpoint: string | undefined;
    /** The family of that endpoint. */
    family: string | undefined;
    /** What is logged about a body of events, or a file to compare. */
    received: Readonly<Record<string, string | number>> | undefined;
    /** What is logged about a report; its rows are counted after it has ended. */
    report:
      | {
          format: string;
          coding: string;
          cache: string;
          query: string;
          rows: RowCount;
          first_byte_ms: number;
        }
      | undefined;
  };
}
