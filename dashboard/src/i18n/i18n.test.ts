import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

import { describe, expect, it } from 'vitest';

import { fill, known, preferredLanguage } from '.';
import en from './en';
import { absolute, lasting, relative } from './time';
import zh from './zh';

const english: Record<string, string> = en;
const sources = readdirSync('src', { recursive: true, encoding: 'utf8' })
  .filter((file) => /\.tsx?$/.test(file) && !/\.test\.tsx?$/.test(file) && !/i18n\/(en|zh)\.ts$/.test(file))
  .map((file) => readFileSync(join('src', file), 'utf8'))
  .join('\n');

const api = '../pkg/apis/core/v1beta1/';

/** Values that a Go file declares. */
const declared = (file: string, pattern: RegExp) =>
  [...readFileSync(api + file, 'utf8').matchAll(pattern)].map(([, value]) => value ?? '');

describe('messages', () => {
  it('are the same in all languages', () => {
    expect(Object.keys(zh).sort()).toEqual(Object.keys(en).sort());
  });

  it('have the same values to fill in', () => {
    const placeholders = (message: string) => [...message.matchAll(/\{\w+\}/g)].map(String).sort();
    for (const [key, message] of Object.entries(english)) {
      expect(placeholders(zh[key as keyof typeof en]), key).toEqual(placeholders(message));
    }
  });

  it('are not empty', () => {
    expect([...Object.entries(en), ...Object.entries(zh)].filter(([, message]) => message.trim() === '')).toEqual([]);
  });

  it('are all used', () => {
    // A key stands in the sources, or its family is asked for by a value: known('code', …), t(`task.${…}`).
    const families = [
      ...[...sources.matchAll(/known\('([\w.]+)'/g)].map(([, family]) => `${family ?? ''}.`),
      ...[...sources.matchAll(/t\(`([\w.]+\.)\$\{/g)].map(([, family]) => family ?? ''),
    ];
    const isUsed = (key: string) =>
      sources.includes(`'${key}'`) || sources.includes(`"${key}"`) || families.some((family) => key.startsWith(family));
    expect(Object.keys(en).filter((key) => !isUsed(key))).toEqual([]);
  });

  it('explain every condition, error code and phase of the API', () => {
    const conditions = declared('constants.go', /(?:Shoot|Seed)\w+ +ConditionType = "(\w+)"/g);
    const codes = declared('common_types.go', /ErrorCode = "(ERR_\w+)"/g);
    const phases = declared('shoot_status_types.go', /CredentialsRotationPhase = "(\w+)"/g);
    expect([conditions.length > 10, codes.length > 10, phases.length]).toEqual([true, true, 6]);
    expect(conditions.filter((value) => !known('condition', value))).toEqual([]);
    expect(codes.filter((value) => !known('code', value))).toEqual([]);
    expect(phases.filter((value) => !known('phase', value))).toEqual([]);
  });
});

describe('fill', () => {
  it.each([
    ['{name} is {state}', { name: 'a', state: 'b' }, 'a is b'],
    ['{count} of {total}', { count: 0 }, '0 of {total}'],
    ['{name}', { name: '{state}' }, '{state}'],
  ])('%s', (message, values, want) => expect(fill(message, values)).toBe(want));
});

describe('preferredLanguage', () => {
  it.each([
    ['zh', ['en-US'], 'zh'],
    [null, ['de', 'zh-TW', 'en'], 'zh'],
    [null, ['fr'], 'en'],
    ['xx', ['en-GB', 'zh'], 'en'],
  ] as const)('%s %j', (chosen, browser, want) => expect(preferredLanguage(chosen, browser)).toBe(want));
});

describe('times', () => {
  const now = new Date('2026-11-27T12:00:00Z');
  it.each([
    ['2026-11-27T11:59:30Z', '30 seconds ago'],
    ['2026-11-27T11:00:00Z', '1 hour ago'],
    ['2026-11-29T13:00:00Z', 'in 2 days'],
    ['2025-10-01T00:00:00Z', 'last year'],
  ])('%s is %s', (time, want) => expect(relative(new Date(time), now)).toBe(want));

  it.each([
    [-3, '0 seconds'],
    [59.9, '59 seconds'],
    [61, '1 minute'],
    [7_300, '2 hours'],
  ])('%s seconds last %s', (seconds, want) => expect(lasting(seconds)).toBe(want));

  it('are told with their zone', () => expect(absolute(now, 'Asia/Shanghai')).toMatch(/20:00:00/));
});
