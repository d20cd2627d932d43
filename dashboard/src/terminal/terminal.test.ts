import { describe, expect, it } from 'vitest';

import { input, read, size } from './protocol';
import { documentWithSheets } from './sheets';

const bytes = (...parts: (number | string)[]) => {
  const all = parts.flatMap((part) => (typeof part === 'number' ? [part] : [...new TextEncoder().encode(part)]));
  return new Uint8Array(all).buffer;
};

describe('messages of terminals', () => {
  it('have a channel first', () => {
    expect([...input('é')]).toEqual([0, 0xc3, 0xa9]);
    expect(new TextDecoder().decode(size(80, 24))).toBe('\u0004{"Width":80,"Height":24}');
  });

  it('are read', () => {
    const output = read(bytes(1, 'hi'));
    expect(output.type === 'output' && new TextDecoder().decode(output.data)).toBe('hi');
    expect(read(bytes(5, 'pod'))).toEqual({ type: 'awaited', text: 'pod' });
    expect(read(bytes(3, '{"message":"over"}'))).toEqual({ type: 'end', status: { message: 'over' } });
    expect(read(bytes(3, 'over'))).toEqual({ type: 'end', status: { message: 'over' } });
    expect(read(bytes(9))).toEqual({ type: 'unknown' });
    expect(read(bytes())).toEqual({ type: 'unknown' });
  });
});

describe('documentWithSheets', () => {
  it('puts styles into sheets, and takes them out again', () => {
    const { document, remove } = documentWithSheets(window.document);
    const style = document.createElement('style');
    document.body.appendChild(style);
    style.textContent = '.a { color: red }';
    style.textContent = '.b { color: blue }';
    expect(window.document.querySelectorAll('style')).toHaveLength(0);
    const rules = window.document.adoptedStyleSheets.map(({ cssRules }) => [...cssRules].map(({ cssText }) => cssText));
    expect(rules).toEqual([[expect.stringContaining('.b')]]);
    expect(document.createElement('div').tagName).toBe('DIV');
    remove();
    expect([...window.document.adoptedStyleSheets]).toEqual([]);
  });
});
