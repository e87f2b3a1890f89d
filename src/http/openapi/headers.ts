import { exampleRequestId } from '../request/problems.ts';
import type { HeaderObject, Limits } from './model.ts';

/** A header is text unless it says otherwise. */
type Told = Omit<HeaderObject, 'schema'> & Partial<HeaderObject>;

const notInJson = 'Not with JSON, whose envelope says it.';

/** The headers of answers, in the words of a caller. */
export function documentHeaders({ requests, windowSeconds }: Limits): Record<string, HeaderObject> {
  const told: Record<string, Told> = {
    'X-Request-Id': {
      description: 'Names the request, also in the log of the service.',
      required: true,
      example: exampleRequestId,
    },
    'Cache-Control': {
      description:
        'Who may keep the answer: nobody (`no-store`), or, of an export with an `ETag`, its caller (`private, no-cache`). What is the same for all callers is `no-cache`.',
      required: true,
      example: 'no-store',
    },
    RateLimit: {
      description: 'How many requests the account has left, and in how many seconds its window ends.',
      example: `"account";r=${requests - 1};t=${windowSeconds}`,
    },
    'RateLimit-Policy': {
      description: 'How many requests an account has in a window, and the seconds of a window.',
      example: `"account";q=${requests};w=${windowSeconds}`,
    },
    'Retry-After': {
      description:
        'Seconds until the request may be sent again. Absent where no waiting mends it: with `internal_error`, `figures_damaged` and `report_timeout`.',
      schema: { type: 'integer', minimum: 1 },
      example: 42,
    },
    'WWW-Authenticate': {
      description: 'How to authenticate (RFC 6750).',
      required: true,
      example: 'Bearer realm="adtally"',
    },
    Allow: { description: 'The methods that the path takes.', required: true, example: 'POST' },
    Upgrade: { description: 'What to use instead.', required: true, example: 'HTTP/1.1' },
    'Cache-Status': {
      description: 'Whether the answer was computed or came from memory (`hit`), as RFC 9211 says it.',
      example: 'adtally; hit',
    },
    Vary: {
      description: 'The answer depends on these headers of the request.',
      example: 'Accept, Accept-Encoding',
    },
    'Last-Modified': {
      description:
        'End of the last load, or of the unload after it: how fresh the data are. Absent while nothing was loaded.',
      example: 'Mon, 02 Nov 2026 04:12:37 GMT',
    },
    ETag: {
      description:
        'Of the data that an export was read from: for `If-None-Match`. Absent where the store does not tell.',
      example: 'W/"5vRLb1Yd0d1q8PKbW3uYHw"',
    },
    'Content-Encoding': {
      description:
        'zstd, gzip or br, as `Accept-Encoding` asks; absent where it asks for no coding. A report of up to 1 MiB comes as gzip or uncompressed.',
      example: 'zstd',
    },
    'Content-Disposition': {
      description: 'A file name of endpoint and range. Not with JSON.',
      example: 'attachment; filename="campaigns_date_2026-10-01_2026-10-31.csv"',
    },
    'Adtally-Account': {
      description: 'The account that the token is of, a Display String of RFC 9651. Not with JSON.',
      example: '%"northwind-outdoor"',
    },
    'Adtally-Currency': {
      description:
        "The currency of the account's money, a code of ISO 4217, where the operator has said which; nothing is converted.",
      example: 'EUR',
    },
    'Adtally-Last-Update-Time': {
      description: `\`last_update_time\`, a string of RFC 9651. ${notInJson}`,
      example: '"2026-11-02 09:30:00 UTC"',
    },
    'Adtally-Column-Types': {
      description: `\`column_metadata\`, a dictionary of RFC 9651 in the order of the row. ${notInJson}`,
      example: 'start_time=Date, end_time=Date, campaign=String, cpa=Money',
    },
    'Adtally-Unconfirmed-Revenue-Dates': {
      description: `\`unconfirmed_revenue_dates\`, a list of RFC 9651; neighbouring days as one interval of ISO 8601. Where the list would be too long for a header, it is one interval with the parameter \`;partly\`: only some of its days are unconfirmed, and JSON names them. ${notInJson}`,
      example: '"2026-10-14", "2026-10-30/2026-10-31"',
    },
    'Adtally-Row-Count': {
      description: `\`row_count\`, where \`limit\` was asked for. ${notInJson} Read right before the rows.`,
      schema: { type: 'integer', minimum: 0 },
      example: 328500,
    },
    'Adtally-Totals': {
      description: `\`totals\`, where they were asked for: a dictionary of RFC 9651 in the order of the row; strings, because its decimals have only 3 places. ${notInJson} Read right before the rows.`,
      example: 'impressions="48210", spent="312.45"',
    },
    'Adtally-Compare-To': {
      description: `\`compare_to\`, where it was asked for: an interval of ISO 8601 as a string of RFC 9651. ${notInJson}`,
      example: '"2026-08-31/2026-09-30"',
    },
  };
  return Object.fromEntries(
    Object.entries(told).map(([name, header]) => [name, { schema: { type: 'string' }, ...header }]),
  );
}
