import { parseXml, XmlElement } from '@rgrove/parse-xml';

export type { XmlElement };

/** The root of a document. @throws for text that is no XML */
export function xmlOf(text: string): XmlElement {
  const { root } = parseXml(text);
  if (!root) throw new Error('the storage answered with an empty document');
  return root;
}

export function childrenOf(element: XmlElement | undefined, name: string): XmlElement[] {
  return (element?.children ?? []).filter(
    (child): child is XmlElement => child instanceof XmlElement && child.name === name,
  );
}

/** The text of a child; empty where there is no such child. */
export function textOf(element: XmlElement | undefined, name: string): string {
  return childrenOf(element, name)[0]?.text ?? '';
}
