import { testLargest } from './largest-suite.ts';

testLargest({ days: 22, places: 8 });
