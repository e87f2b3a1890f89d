/** The network's name and logo, which the service puts into the page. */
export function brand(): Node {
  const template = document.querySelector<HTMLTemplateElement>('template#brand');
  return template ? template.content.cloneNode(true) : document.createTextNode('adtally');
}
