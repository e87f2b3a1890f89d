import { readFileSync } from 'node:fs';
import { extname } from 'node:path';

/** How the network that runs the service shows itself on the page. */
export interface Branding {
  readonly name: string;
  /** `#rrggbb` */
  readonly colour?: string;
  /** The picture as a `data:` address. */
  readonly logo?: string;
}

// A bar chart. Encoded, because the only address that a page of ours names is its own.
const barChart = `data:image/svg+xml;base64,${Buffer.from(
  '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 16 16"><rect width="16" height="16" rx="3" fill="#0b5f6b"/><path d="M4 12V8M8 12V4M12 12V6" stroke="#fff" stroke-width="2"/></svg>',
).toString('base64')}`;

/** The picture of the network, or adtally's own, as a `data:` address. */
export function logoAddress({ logo = barChart }: Branding): string {
  return logo;
}

/** A style sheet in the colour of the network, if it has one. */
export function branded(style: string, { colour }: Branding): string {
  if (!colour) return style;
  const { light, dark } = readableColours(colour);
  return `:root{--brand-light:${light};--brand-dark:${dark}}${style}`;
}

const mediaTypes: Readonly<Record<string, string>> = {
  '.svg': 'image/svg+xml',
  '.png': 'image/png',
  '.webp': 'image/webp',
  '.jpg': 'image/jpeg',
  '.jpeg': 'image/jpeg',
};

const maxLogoBytes = 64 * 1024;

/** @throws when the file cannot be read, is no picture that browsers show, or is large: it is part of the page */
export function readLogo(file: string): string {
  const mediaType = mediaTypes[extname(file).toLowerCase()];
  if (!mediaType) throw new Error('is not a picture: .svg, .png, .webp or .jpg');
  const picture = readFileSync(file);
  if (picture.length > maxLogoBytes) throw new Error(`is larger than ${maxLogoBytes / 1024} KiB`);
  return `data:${mediaType};base64,${picture.toString('base64')}`;
}

type Rgb = readonly [number, number, number];

const white: Rgb = [255, 255, 255];
/** Grounds of style.css. */
const lightGround: Rgb = [239, 237, 232];
const darkGround: Rgb = [33, 38, 44];
/** WCAG 2.2 wants 4.5; a tint of the colour lies behind some texts. */
const leastContrast = 5.6;

/** The colour, made as much darker and lighter as texts on light and on dark ground need to be read. */
export function readableColours(colour: string): { light: string; dark: string } {
  const rgb = parse(colour);
  return { light: readable(rgb, lightGround, [0, 0, 0]), dark: readable(rgb, darkGround, white) };
}

function readable(colour: Rgb, ground: Rgb, towards: Rgb): string {
  for (let share = 0; share < 1; share += 0.02) {
    const mixed = colour.map((part, n) =>
      Math.round(part + ((towards[n] ?? 0) - part) * share),
    ) as unknown as Rgb;
    if (contrast(mixed, ground) >= leastContrast) return hex(mixed);
  }
  return hex(towards);
}

/** WCAG 2.2, 1.4.3. */
export function contrast(one: Rgb, other: Rgb): number {
  const [a, b] = [luminance(one), luminance(other)];
  return (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
}

function luminance(rgb: Rgb): number {
  const [red, green, blue] = rgb.map((part) => {
    const share = part / 255;
    return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
  }) as unknown as Rgb;
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}

function parse(colour: string): Rgb {
  return [1, 3, 5].map((at) => Number.parseInt(colour.slice(at, at + 2), 16)) as unknown as Rgb;
}

function hex(rgb: Rgb): string {
  return `#${rgb.map((part) => part.toString(16).padStart(2, '0')).join('')}`;
}
