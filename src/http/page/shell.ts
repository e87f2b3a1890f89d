import { html, raw } from 'hono/html';
import { logoAddress } from '../../config/branding.ts';
import type { PageSettings } from '../../config/page-settings.ts';

/** The page before its script runs, which makes everything else from the answers of the API. */
export function shell({ brand, signIn, mails }: PageSettings, script: string, style: string) {
  return html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<title>${brand.name}</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="referrer" content="no-referrer">
<link rel="icon" href="${logoAddress(brand)}">
<style>${raw(style)}</style>
</head>
<body>
<template id="brand"><img src="${logoAddress(brand)}" alt="">${brand.name}</template>
${
  signIn &&
  html`<template id="sign-in"><a class="primary" href="${signIn.publicUrl}/auth/sign-in">${new URL(signIn.issuer).host}</a></template>
`
}${
  mails
    ? html`<template id="mails"></template>
`
    : ''
}<div id="app"></div>
<noscript><p>This page needs JavaScript. Everything it shows comes from the API, which is described in the documentation: <a href="/docs">/docs</a></p></noscript>
<script>${raw(script)}</script>
</body>
</html>
`;
}
