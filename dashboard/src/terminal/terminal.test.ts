import { describe, expect, it } from 'vitest';

import { inputs, path, read, size } from './protocol';
import { withSheets } from './sheets';

const bytes = (...parts: (number | string)[]) => {
  const all = parts.flatMap((part) => (typeof part === 'number' ? [part] : [...new TextEncoder().encode(part)]));
  return new Uint8Array(all).buffer;
};

describe('messages of terminals', () => {
  it('have a channel first', () => {
    expect(inputs('é').map((message) => [...message])).toEqual([[0, 0xc3, 0xa9]]);
    expect(inputs('x'.repeat((64 << 10) + 1)).map(({ length }) => length)).toEqual([(64 << 10) + 1, 2]);
    expect(inputs('')).toEqual([]);
    expect(new TextDecoder().decode(size(80, 24))).toBe('\u0004{"Width":80,"Height":24}');
  });

  it('are read', () => {
    const output = read(bytes(1, 'hi'));
    expect(output.type === 'output' && new TextDecoder().decode(output.data)).toBe('hi');
    expect(read(bytes(5, 'pod'))).toEqual({ type: 'awaited', text: 'pod' });
    expect(read(bytes(3, '{"message":"over"}'))).toEqual({ type: 'end', status: { message: 'over' } });
    expect(read(bytes(3, 'over'))).toEqual({ type: 'end', status: { message: 'over' } });
    expect(read(bytes(6, '{"expires":"2026-11-27T20:00:00Z"}'))).toEqual({
      type: 'opened',
      expires: '2026-11-27T20:00:00Z',
    });
    expect(read(bytes(6, 'over'))).toEqual({ type: 'opened', expires: '' });
    expect(read(bytes(9))).toEqual({ type: 'unknown' });
    expect(read(bytes())).toEqual({ type: 'unknown' });
  });
});

it('is at a path that names cannot change', () => {
  expect(path('garden-a', 'one&target=x', 'shoot')).toBe(
    '/api/terminal?namespace=garden-a&shoot=one%26target%3Dx&target=shoot',
  );
});

describe('withSheets', () => {
  it('puts styles into sheets while something opens, and takes them out again', () => {
    const page = window.document;
    const remove = withSheets(page, () => {
      const style = page.createElement('style');
      page.body.appendChild(style);
      style.textContent = '.a { color: red }';
      style.textContent = '.b { color: blue }';
      expect(page.createElement('div').tagName).toBe('DIV');
    });
    expect(page.querySelectorAll('style')).toHaveLength(0);
    const rules = page.adoptedStyleSheets.map(({ cssRules }) => [...cssRules].map(({ cssText }) => cssText));
    expect(rules).toEqual([[expect.stringContaining('.b')]]);
    expect(page.createElement('style').tagName).toBe('STYLE');
    remove();
    expect([...page.adoptedStyleSheets]).toEqual([]);
  });

  it('gives the page back what it makes elements with, also where nothing opens', () => {
    const fail = () => {
      throw new Error('no room');
    };
    expect(() => withSheets(window.document, fail)).toThrow('no room');
    expect(window.document.createElement('style').tagName).toBe('STYLE');
  });
});
