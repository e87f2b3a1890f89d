import { de } from './de.ts';
import { en, type Words } from './en.ts';
import { ja } from './ja.ts';
import type { Language } from './languages.ts';
import { language } from './locale.ts';

const words: Record<Language, Words> = { en, de, ja };

/** Every text of the page, in the language of its reader. */
export const text = words[language];
