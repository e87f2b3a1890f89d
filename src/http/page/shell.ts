import { html, raw } from 'hono/html';
import type { Branding } from './branding.ts';

// A bar chart. Encoded, because the only address that a page of ours names is its own.
const icon = `data:image/svg+xml;base64,${Buffer.from(
  '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 16 16"><rect width="16" height="16" rx="3" fill="#0b5f6b"/><path d="M4 12V8M8 12V4M12 12V6" stroke="#fff" stroke-width="2"/></svg>',
).toString('base64')}`;

/** The page before its script runs: everything else is made from the answers of the API. */
export function shell(brand: Branding, script: string, style: string) {
  return html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<title>${brand.name}: reports</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="referrer" content="no-referrer">
<link rel="icon" href="${brand.logo ?? icon}">
<style>${raw(style)}</style>
</head>
<body>
<template id="brand"><img src="${brand.logo ?? icon}" alt="">${brand.name}</template>
<div id="app"></div>
<noscript><p>This page needs JavaScript. Everything it shows comes from the API, which is described in <a href="/docs">the documentation</a>.</p></noscript>
<script>${raw(script)}</script>
</body>
</html>
`;
}
