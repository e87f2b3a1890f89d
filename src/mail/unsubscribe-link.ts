import type { Links } from '../accounts/links.ts';

export const unsubscribePath = '/unsubscribe';

/** Signed with the secret of links alone: whoever got the mail may use it, and it never ends. */
const key = 'unsubscribe';
const signedUntil = new Date(0);

/** The address behind which a recipient ends the mails of a schedule; undefined where links are not set up. */
export function unsubscribeLink(links: Links, schedule: string, recipient: string): string | undefined {
  const address = `${unsubscribePath}?${new URLSearchParams({ schedule, to: recipient })}`;
  return links.make({ id: key, hash: key }, address, signedUntil);
}

/** Whom such an address is of; undefined if it was not made here. */
export function readUnsubscribeLink(
  links: Links,
  address: string,
): { readonly schedule: string; readonly recipient: string } | undefined {
  const claim = links.read(address);
  const { searchParams } = new URL(address);
  const schedule = searchParams.get('schedule');
  const recipient = searchParams.get('to');
  if (!claim || !schedule || !recipient || !claim.isMadeBy(key)) return undefined;
  return { schedule, recipient };
}
