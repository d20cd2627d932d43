// The editor as its users have it: they paste into it, and copy from it.
import type { Locator } from 'playwright-core';

import type { Visitor } from './visitor.ts';

export const editorOf = ({ page }: Visitor, label: string): Locator => page.getByRole('textbox', { name: label });

async function selectAll(editor: Locator) {
  await editor.focus();
  await editor.press('Control+a');
}

export async function textOf(editor: Locator): Promise<string> {
  await selectAll(editor);
  return editor.evaluate((element) => {
    const clipboardData = new DataTransfer();
    element.dispatchEvent(new ClipboardEvent('copy', { clipboardData, bubbles: true, cancelable: true, composed: true }));
    return clipboardData.getData('text/plain');
  });
}

/** setText replaces all that is there. */
export async function setText(editor: Locator, text: string) {
  await selectAll(editor);
  await editor.evaluate((element, pasted) => {
    const clipboardData = new DataTransfer();
    clipboardData.setData('text/plain', pasted);
    element.dispatchEvent(new ClipboardEvent('paste', { clipboardData, bubbles: true, cancelable: true, composed: true }));
  }, text);
}
