import type { Store } from '../../../../clickhouse/client.ts';
import { signOutEverywhere } from '../../../accounts/sign-outs.ts';
import type { SignInSettings } from '../../../config/sign-in.ts';
import { KnownSignOuts } from './known-sign-outs.ts';
import { Provider } from './provider.ts';
import type { SignInDeps } from './routes.ts';
import { Sessions } from './sessions.ts';

export interface SignInStores {
  readonly store: Store;
  /** Works with a client that may write `sign_outs`. */
  readonly withWriter: (work: (writer: Store) => Promise<void>) => Promise<void>;
  readonly onError: (error: unknown) => void;
}

/** Signing in at this provider; `signOuts` is to be started and stopped. */
export function signInOf(
  settings: SignInSettings,
  { store, withWriter, onError }: SignInStores,
): SignInDeps & { readonly signOuts: KnownSignOuts } {
  const signOuts = new KnownSignOuts(store, onError);
  return {
    signOuts,
    provider: new Provider(settings),
    sessions: new Sessions(settings, signOuts),
    signOutEverywhere: async (person) => {
      await withWriter((writer) => signOutEverywhere(writer, person));
      await signOuts.refresh();
    },
  };
}
