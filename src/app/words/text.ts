import { en, type Words } from './en.ts';
import { type Language, language } from './locale.ts';

const words: Record<Language, Words> = { en };

/** Every text of the page, in the language of its reader. */
export const text = words[language];
