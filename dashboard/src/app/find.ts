// What a search over all finds.
import type { MessageKey } from '../i18n';

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
