import type { Links } from '../accounts/links.ts';
import { ConfigError } from '../config/config.ts';

export const unsubscribePath = '/unsubscribe';
export const agreePath = '/agree';
type Path = typeof unsubscribePath | typeof agreePath;

/** Signed with the secret of links alone: whoever got the mail may use it, and it never ends. */
const key = 'unsubscribe';
const signedUntil = new Date(0);

export interface RecipientOf {
  /** Its id, or what stands for all that an account made. */
  readonly schedule: string;
  readonly recipient: string;
  /** Of the page behind the link. */
  readonly language: string;
}

/**
 * The address behind which a recipient ends the mails of a schedule, or agrees to them.
 * @throws {ConfigError} where links are not set up
 */
export function recipientLink(links: Links, path: Path, { schedule, recipient, language }: RecipientOf) {
  const address = `${path}?${new URLSearchParams({ schedule, to: recipient, language })}`;
  const link = links.make({ id: key, hash: key }, address, signedUntil);
  if (link === undefined) throw new ConfigError('LINK_SECRET: is needed for the links in mails');
  return link;
}

/** @throws {ConfigError} where links are not set up */
export function requireLinks(links: Links): void {
  recipientLink(links, unsubscribePath, { schedule: '', recipient: '', language: '' });
}

/** Whom such an address is of; undefined if it was not made here. */
export function readRecipientLink(links: Links, address: string): RecipientOf | undefined {
  const claim = links.read(address);
  const { searchParams } = new URL(address);
  const schedule = searchParams.get('schedule');
  const recipient = searchParams.get('to');
  if (!claim || !schedule || !recipient || !claim.isMadeBy(key)) return undefined;
  return { schedule, recipient, language: searchParams.get('language') ?? 'en' };
}
