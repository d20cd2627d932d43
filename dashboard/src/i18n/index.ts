// The languages of the pages. Messages are read by key; en.ts has all keys, and the type checker holds zh.ts to them.
import { useSyncExternalStore } from 'react';

import type en from './en';

type Messages = typeof en;
export type MessageKey = keyof Messages;
export type Language = 'en' | 'zh';
export type Values = Record<string, string | number>;

export const languages: { id: Language; name: string }[] = [
  { id: 'en', name: 'English' },
  { id: 'zh', name: '中文' },
];

const storageKey = 'trellis-language';

let language: Language = 'en';
let messages: Record<string, string> = {};
const listeners = new Set<() => void>();

/** preferredLanguage is what the viewer chose here before, else what their browser asks for. */
export function preferredLanguage(chosen: string | null, browser: readonly string[]): Language {
  if (chosen === 'en' || chosen === 'zh') return chosen;
  return browser
    .find((tag) => /^(en|zh)\b/i.test(tag))
    ?.toLowerCase()
    .startsWith('zh')
    ? 'zh'
    : 'en';
}

/** fill puts values into a message, such as {name}. What has no value stays as it is. */
export function fill(message: string, values: Values = {}): string {
  return message.replace(/\{(\w+)\}/g, (whole, name: string) => String(values[name] ?? whole));
}

/** t is the message of a key in the present language. */
export function t(key: MessageKey, values?: Values): string {
  return fill(messages[key] ?? key, values);
}

/** known is the message of a key that the garden makes up, such as of a condition; undefined if there is none. */
export function known(family: string, value: string): string | undefined {
  return messages[`${family}.${value}`];
}

export function currentLanguage(): Language {
  return language;
}

/** setMessages makes a language the present one. */
export function setMessages(next: Language, loaded: Record<string, string>) {
  language = next;
  messages = loaded;
  listeners.forEach((listener) => listener());
}

/** chooseLanguage loads a language and shows it, and remembers it where the viewer chose it. */
export async function chooseLanguage(next: Language, remember = true) {
  const loaded = next === 'zh' ? await import('./zh') : await import('./en');
  if (remember) localStorage.setItem(storageKey, next);
  document.documentElement.lang = next === 'zh' ? 'zh-CN' : 'en';
  setMessages(next, loaded.default);
}

export function storedLanguage(): string | null {
  return localStorage.getItem(storageKey);
}

/** useLanguage renders a component again when the language changes. */
export function useLanguage(): Language {
  return useSyncExternalStore(subscribe, currentLanguage);
}

function subscribe(listener: () => void) {
  listeners.add(listener);
  return () => listeners.delete(listener);
}
