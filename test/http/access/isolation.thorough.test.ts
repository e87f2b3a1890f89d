import { isolateAccounts } from '../../support/isolation-suite.ts';
import { paths } from '../../support/oracle.ts';

isolateAccounts(() => paths);
