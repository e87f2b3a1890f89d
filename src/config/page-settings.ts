import * as z from 'zod';
import { type Branding, readLogo } from './branding.ts';
import type { SignInSettings } from './sign-in.ts';

/** Environment variables of the page; each message completes the sentence that begins with the variable and its value. */
export const pageVariables = {
  BRAND_NAME: z.string().trim().min(1, 'is empty').max(60, 'is longer than 60 characters').default('adtally'),
  BRAND_COLOR: z
    .string()
    .regex(/^#[0-9a-f]{6}$/i, 'is not a colour, such as #0b5f6b')
    .optional(),
  BRAND_LOGO: z.string().transform(logoOf).optional(),
  FRAME_ANCESTORS: z
    .string()
    .transform((text) => text.split(/[\s,]+/).filter(Boolean))
    .refine(areOrigins, 'is not a list of origins, such as https://panel.example.com')
    .default([]),
};

/** How the page looks, and who may show it. */
export interface PageSettings {
  readonly brand: Branding;
  /** Origins whose pages may show this one in a frame. */
  readonly frameAncestors: readonly string[];
  /** Whether accounts may have reports of theirs sent by mail; absent: not. */
  readonly mails?: boolean;
  /** Where people sign in, if they can without a token. */
  readonly signIn?: Pick<SignInSettings, 'issuer' | 'publicUrl'>;
}

function logoOf(file: string, context: z.RefinementCtx): string {
  try {
    return readLogo(file);
  } catch (error) {
    const known = error instanceof Error && !('code' in error);
    const reason = known ? error.message : 'cannot be read';
    context.addIssue({ code: 'custom', message: reason });
    return z.NEVER;
  }
}

/** Hosts with a scheme; neither paths nor keywords, and nothing that would end a header. */
function areOrigins(origins: readonly string[]): boolean {
  return origins.every((origin) => /^https?:\/\/(\*\.)?[a-z0-9.-]+(:\d+)?$/i.test(origin));
}
