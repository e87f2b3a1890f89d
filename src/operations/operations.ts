import {
  createToken,
  limits,
  linkReport,
  listCurrencies,
  revokeToken,
  setCurrency,
  setLimit,
  tokens,
} from './access.ts';
import { closedRows, closeMonths, closes, manifest } from './closes.ts';
import { audit, dismiss, loads, previewOfUnload, rejects, replay, showLoad, unload } from './history.ts';
import { confirm, lists } from './lists.ts';
import type { FileOperation, Operation } from './operation.ts';
import { createSchedule, pauseSchedule, removeSchedule, resumeSchedule, schedules } from './schedules.ts';

export const operations: readonly (Operation | FileOperation)[] = [
  createToken,
  tokens,
  linkReport,
  revokeToken,
  limits,
  setLimit,
  listCurrencies,
  setCurrency,
  createSchedule,
  schedules,
  pauseSchedule,
  resumeSchedule,
  removeSchedule,
  ...Object.values(lists),
  confirm,
  loads,
  showLoad,
  rejects,
  dismiss,
  replay,
  unload,
  previewOfUnload,
  closeMonths,
  closes,
  closedRows,
  manifest,
  audit,
];
