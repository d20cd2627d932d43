// What changed by a move: which clusters an object left, and which it came to.
import { objectName } from './placement';
import type { Move } from './types';

export interface MovePart {
  name: string;
  change: 'left' | 'came' | 'stays';
}

export interface MarkedMove extends Move {
  uid: string;
  parts: MovePart[];
}

/** Types of moves whose clusters an object left; those of the others have it since, or had it all the time. */
const leaving = new Set(['Eviction', 'Failover']);
const coming = new Set(['FailBack']);

/**
 * markedMoves tells of moves, the newest first, what each changed. A decision names all clusters that have the object
 * since: of those, it came to the ones that it had left before.
 */
export function markedMoves(moves: Move[]): MarkedMove[] {
  return moves.map((move, i) => ({
    ...move,
    uid: [move.time, nameOf(move), move.type, move.reason, move.message, ...(move.clusters ?? [])].join('|'),
    parts: (move.clusters ?? []).map((name) => ({ name, change: changeOf(move, name, moves.slice(i + 1)) })),
  }));
}

const nameOf = ({ object }: Move) => (object ? objectName(object) : '');

function changeOf(move: Move, cluster: string, before: Move[]): MovePart['change'] {
  if (leaving.has(move.type ?? '')) return 'left';
  if (coming.has(move.type ?? '')) return 'came';
  if (move.type !== 'Decision') return 'stays';
  const last = before.find(
    (each) =>
      nameOf(each) === nameOf(move) &&
      (each.clusters ?? []).includes(cluster) &&
      (leaving.has(each.type ?? '') || coming.has(each.type ?? '')),
  );
  return last && leaving.has(last.type ?? '') ? 'came' : 'stays';
}
