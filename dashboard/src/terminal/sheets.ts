// xterm makes elements of style, which the content security policy forbids. It takes a document to make them with:
// this one gives it elements whose text goes into a sheet made by script, which is allowed.

/** documentWithSheets is the page's, but for elements of style. remove takes their sheets out again. */
export function documentWithSheets(page: Document): { document: Document; remove: () => void } {
  const sheets: CSSStyleSheet[] = [];
  const styleLike = () => {
    const sheet = new CSSStyleSheet();
    sheets.push(sheet);
    page.adoptedStyleSheets = [...page.adoptedStyleSheets, sheet];
    const element = page.createElement('span');
    element.hidden = true;
    Object.defineProperty(element, 'textContent', { set: (css: string) => sheet.replaceSync(css) });
    return element;
  };
  const document = new Proxy(page, {
    get(target, property) {
      if (property === 'createElement') {
        return (name: string, options?: ElementCreationOptions) =>
          name === 'style' ? styleLike() : target.createElement(name, options);
      }
      const value = Reflect.get(target, property) as unknown;
      return typeof value === 'function' ? (value.bind(target) as unknown) : value;
    },
  });
  const remove = () => {
    page.adoptedStyleSheets = page.adoptedStyleSheets.filter((sheet) => !sheets.includes(sheet));
  };
  return { document, remove };
}
