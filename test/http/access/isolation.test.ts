import { describe, expect, it } from 'vitest';
import { createToken } from '../../../src/accounts/tokens.ts';
import { AccountCache } from '../../../src/http/access/account-cache.ts';
import { isolateAccounts } from '../../support/isolation-suite.ts';
import { paths } from '../../support/oracle.ts';
import { useStore } from '../../support/store.ts';

// Every account and every path; isolation.thorough.test.ts asks each account on each path.
isolateAccounts((account) => paths.filter((_, n) => (n + account) % 8 === 0));

describe('a login token', () => {
  const test = useStore();

  it('opens the reports of its account from the moment it exists', async () => {
    const cache = new AccountCache({ store: test.store, refreshMs: 1, onError: () => {} });
    await cache.start();
    try {
      for (const n of Array.from({ length: 30 }).keys()) {
        const token = await createToken(test.store, { account: `account ${n}`, label: '' });
        expect(await cache.login(token)).toMatchObject({ account: `account ${n}` });
      }
    } finally {
      cache.stop();
    }
  });
});
