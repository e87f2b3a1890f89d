import * as z from 'zod';

/** Environment variables of mails; each message completes the sentence that begins with the variable and its value. */
export const mailVariables = {
  SMTP_URL: z
    .url({
      protocol: /^smtps?$/,
      hostname: /./,
      error: 'is not the address of a mail server, such as smtps://USER:PASSWORD@smtp.example.com',
    })
    .optional(),
  MAIL_FROM: z
    .string()
    .regex(
      /^([^<>\r\n]+<[^\s<>@,;:()"]+@[^\s<>@,;:()"]+>|[^\s<>@,;:()"]+@[^\s<>@,;:()"]+)$/,
      'is not an address of mail, such as Reports <reports@example.com>',
    )
    .transform(mailbox)
    .optional(),
  ACCOUNT_MAILS: z.enum(['on', 'off'], 'is neither on nor off').default('off'),
  SERVICE_URL: z
    .url({
      protocol: /^https?$/,
      error: 'is not the address of a service of reports, such as http://adtally:8080',
    })
    .refine((text) => !/[?#]/.test(text), 'has a ? or #, but the paths of reports are appended to it')
    .transform((text) => text.replace(/\/$/, ''))
    .optional(),
};

/** Apart, because a name may have what means something in an address: `Reports: Acme (EU)`. */
function mailbox(text: string): { readonly name: string; readonly address: string } {
  const [, given = '', address = text] = /^(.*)<(.*)>$/s.exec(text) ?? [];
  const name = given.trim();
  const [, quoted] = /^"(.*)"$/s.exec(name) ?? [];
  return { name: quoted?.replace(/\\(.)/gs, '$1') ?? name, address };
}
