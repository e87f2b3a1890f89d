/** The languages of the page and of mails, each by its own name. */
export const languages = { en: 'English', de: 'Deutsch', ja: '日本語' } as const;
export type Language = keyof typeof languages;

/** `de` of `de-CH`, if there is that language. */
export function languageOf(tag: string): Language | undefined {
  const [name = ''] = tag.split('-');
  return Object.hasOwn(languages, name) ? (name as Language) : undefined;
}
