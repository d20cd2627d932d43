import { describe, expect, it } from 'vitest';

import { findPlaces, pagesFor, type Place } from './find';
import { expiresSoon } from './expiry';
import { schemeOf } from './scheme';

const place = (title: string, detail = ''): Place => ({ kind: 'search.shoot', title, detail, to: `/${title}` });
const places = [place('my-prod', 'garden-a'), place('prod-eu', 'garden-b'), place('test', 'garden-prod')];

describe('findPlaces', () => {
  it.each([
    ['prod', ['prod-eu', 'my-prod', 'test']],
    ['prod garden-b', ['prod-eu']],
    ['PROD  A', ['prod-eu', 'my-prod', 'test']],
    ['none', []],
    ['', ['my-prod', 'prod-eu', 'test']],
  ])('%s', (text, want) => expect(findPlaces(places, text, 20).map(({ title }) => title)).toEqual(want));

  it('leads to pages that somebody may open', () => {
    const found = (rights: { seeds: boolean; shoots: boolean }) =>
      findPlaces(pagesFor(rights), 'seeds', 20).map(({ to }) => to);
    expect(found({ seeds: true, shoots: true })).toContain('/operations?tab=seeds');
    expect(found({ seeds: false, shoots: false })).toEqual([]);
  });

  it('finds no more than are shown', () => expect(findPlaces(places, '', 2)).toHaveLength(2));
});

describe('schemeOf', () => {
  it.each([
    ['dark', false, 'dark'],
    ['light', true, 'light'],
    ['auto', true, 'dark'],
    [null, false, 'light'],
  ])('%s %s', (chosen, dark, want) => expect(schemeOf(chosen, dark)).toBe(want));
});

describe('expiresSoon', () => {
  const now = new Date('2026-11-27T12:00:00Z');
  it.each([
    ['2026-11-27T12:04:00Z', true],
    ['2026-11-27T12:06:00Z', false],
    ['2026-11-27T11:00:00Z', true],
    ['', false],
  ])('%s', (expires, want) => expect(expiresSoon(expires, now)).toBe(want));
});
