import { parseXml, XmlElement } from '@rgrove/parse-xml';

export type { XmlElement };

/** The root of a document. @throws for any other document, without a word of it: it may be secret */
export function xmlOf(text: string, rootName: string): XmlElement {
  const root = rootOf(text);
  if (root?.name !== rootName)
    throw new Error(`the answer is no ${rootName}: is this address that of a store of objects?`);
  return root;
}

function rootOf(text: string): XmlElement | null {
  try {
    return parseXml(text).root;
  } catch {
    return null;
  }
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
