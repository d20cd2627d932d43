// What a search over all finds.
import { t, type MessageKey } from '../i18n';

export interface Place {
  kind: MessageKey;
  title: string;
  detail?: string;
  to: string;
}

/**
 * findPlaces are those that have all words, the best first: those that begin with the first word, then those whose title
 * has it, then the others.
 */
export function findPlaces(places: Place[], text: string, most: number): Place[] {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  const [first = ''] = words;
  return places
    .filter(({ title, detail = '' }) => {
      const all = `${title} ${detail}`.toLowerCase();
      return words.every((word) => all.includes(word));
    })
    .map((place) => ({ place, rank: rankOf(place.title.toLowerCase(), first) }))
    .sort((a, b) => a.rank - b.rank || a.place.title.localeCompare(b.place.title))
    .slice(0, most)
    .map(({ place }) => place);
}

function rankOf(title: string, word: string): number {
  if (title.startsWith(word)) return 0;
  return title.includes(word) ? 1 : 2;
}

/** pagesFor are the pages that are not of one object, as far as somebody may open them. */
export function pagesFor(rights: { seeds: boolean; shoots: boolean }): Place[] {
  const page = (title: MessageKey, to: string): Place => ({ kind: 'search.page', title: t(title), to });
  return [
    page('nav.projects', '/projects'),
    page('nav.fleets', '/fleets'),
    ...(rights.shoots ? [page('nav.allShoots', '/shoots')] : []),
    ...(rights.seeds
      ? [
          page('garden.glance', '/operations'),
          page('garden.seeds', '/operations?tab=seeds'),
          page('garden.managedSeeds', '/operations?tab=managedseeds'),
          page('garden.installations', '/operations?tab=installations'),
          page('garden.expiring', '/operations?tab=expiring'),
          page('garden.backups', '/operations?tab=backups'),
        ]
      : []),
    page('about.title', '/about'),
  ];
}
