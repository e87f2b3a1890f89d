import { completedAfterEachStep, replacedBesideReaders } from '../../support/replace-suite.ts';
import { useService } from '../../support/service.ts';
import { useStore } from '../../support/store.ts';
import { useUnloads } from '../../support/unloads.ts';

const db = useStore();
const loads = useUnloads(db);
completedAfterEachStep(db, loads, 'days');
replacedBesideReaders(db, useService(db), loads, 'a month');
