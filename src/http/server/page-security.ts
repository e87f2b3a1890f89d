import { createHash } from 'node:crypto';
import { secureHeaders } from 'hono/secure-headers';

type Options = NonNullable<Parameters<typeof secureHeaders>[0]>;

const nothing = ["'none'"];

/** A page may use what its policy names, and nothing else. No site may frame it, unless the policy names some. */
export function pageSecurity(policy: NonNullable<Options['contentSecurityPolicy']>) {
  return secureHeaders({
    contentSecurityPolicy: {
      defaultSrc: nothing,
      baseUri: nothing,
      formAction: nothing,
      frameAncestors: nothing,
      ...policy,
    },
    xFrameOptions: policy.frameAncestors ? false : 'DENY',
    referrerPolicy: 'no-referrer',
    // Whether the whole host uses TLS is for its operator to say.
    strictTransportSecurity: false,
  });
}

/** A script or a style as a policy names it. */
export const hashOf = (text: string): string =>
  `'sha256-${createHash('sha256').update(text).digest('base64')}'`;
