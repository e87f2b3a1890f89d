import { createToken, limits, linkReport, revokeToken, setLimit, tokens } from './access.ts';
import { audit, dismiss, loads, previewOfUnload, rejects, replay, showLoad, unload } from './history.ts';
import { confirm, lists } from './lists.ts';
import type { FileOperation, Operation } from './operation.ts';

export const operations: readonly (Operation | FileOperation)[] = [
  createToken,
  tokens,
  linkReport,
  revokeToken,
  limits,
  setLimit,
  ...Object.values(lists),
  confirm,
  loads,
  showLoad,
  rejects,
  dismiss,
  replay,
  unload,
  previewOfUnload,
  audit,
];
