import { asked } from '../rows/asked.ts';
import type { Asked } from '../rows/protocol.ts';
import { accountOf, type Key } from '../state/key.ts';
import { pathOf } from '../state/request.ts';
import type { Opened } from '../state/session.ts';
import { askedOf, type Shown } from './download.ts';

/** A link ends with the token that made it, and a person who signed in has none. */
export const makesLinks = (key: Key): boolean => accountOf(key) === undefined;

/** The path of the report as a workbook that needs no token, for a week. */
export function fileLink(shown: Shown, session: Opened): Promise<Asked<{ readonly link: string }>> {
  const file = pathOf(shown.state).replace('/v1/', '/v1/links/').replace('/breakdowns/', '/');
  return asked(`${file}.xlsx`, session, { ...askedOf(shown, session.today), totals: true });
}
