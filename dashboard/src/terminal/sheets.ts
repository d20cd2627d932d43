// xterm makes elements of style, which the content security policy forbids: some with the document that it may be given
// to make them with, one (in 6.0.0) with the page's all the same. So the page makes others while a terminal opens: ones
// whose text goes into a sheet made by script, which is allowed.

/** withSheets opens something, whose elements of style become sheets. What it gives takes them out again. */
export function withSheets(page: Document, open: () => void): () => void {
  const sheets: CSSStyleSheet[] = [];
  const styleLike = () => {
    const sheet = new CSSStyleSheet();
    sheets.push(sheet);
    page.adoptedStyleSheets = [...page.adoptedStyleSheets, sheet];
    const element = createElement('span');
    element.hidden = true;
    Object.defineProperty(element, 'textContent', { set: (css: string) => sheet.replaceSync(css) });
    return element;
  };
  const createElement = page.createElement.bind(page);
  Object.defineProperty(page, 'createElement', {
    configurable: true,
    value: (name: string, options?: ElementCreationOptions) =>
      name === 'style' ? styleLike() : createElement(name, options),
  });
  try {
    open();
  } finally {
    // The one of all documents is there again.
    Reflect.deleteProperty(page, 'createElement');
  }
  return () => {
    page.adoptedStyleSheets = page.adoptedStyleSheets.filter((sheet) => !sheets.includes(sheet));
  };
}
