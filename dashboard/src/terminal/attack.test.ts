import { expect, it } from 'vitest';

import { newTerminal } from './Screen';

const script = '<img src=x onerror=alert(1)><script>alert(2)</script>';

// What programs say to terminals: titles, icons, the clipboard, links, windows, and who they are asked to answer.
const attacks = {
  text: script,
  title: `\u001b]0;${script}\u0007`,
  icon: `\u001b]1;${script}\u0007`,
  'title of a window': `\u001b]2;${script}\u001b\\`,
  clipboard: '\u001b]52;c;ZXZpbA==\u0007',
  link: `\u001b]8;;javascript:alert(1)\u001b\\${script}\u001b]8;;\u001b\\`,
  'title as input': `\u001b]2;rm -rf ~\u0007\u001b[21t`,
  'icon as input': `\u001b]1;rm -rf ~\u0007\u001b[20t`,
  'window to the front': '\u001b[5t\u001b[3;0;0t\u001b[8;1;1t',
};

it.each(Object.entries(attacks))('shows output as text: %s', async (_, output) => {
  const page = window.document;
  const title = page.title;
  const parent = page.body.appendChild(page.createElement('div'));
  const terminal = newTerminal();
  const typed: string[] = [];
  terminal.onData((text) => typed.push(text));
  await new Promise<void>((resolve) => terminal.write(output, resolve));
  expect(page.title).toBe(title);
  expect(page.querySelectorAll('img, script, a')).toHaveLength(0);
  expect(typed).toEqual([]);
  expect(terminal.cols).toBe(80);
  terminal.dispose();
  parent.remove();
});

it('follows no links', () => {
  const terminal = newTerminal();
  const { linkHandler } = terminal.options;
  expect(linkHandler?.allowNonHttpProtocols).toBeFalsy();
  expect(linkHandler?.activate(new MouseEvent('click'), 'https://evil.example', {} as never)).toBeUndefined();
  terminal.dispose();
});
