// Requests about fleets.
import { useQuery } from '@tanstack/react-query';

import { request } from '../api/http';
import type { Cluster } from '../api/paths';
import { objectQuery, type RolloutAction } from './placement';
import type { Explanation, HeldDeletion, Move, ObjectKey, Overrides, Plan, Rollout } from './types';

export interface Fleet {
  namespace: string;
  name: string;
}

export const clusterOf = ({ namespace, name }: Fleet): Cluster => `shoot/${namespace}/${name}`;

const base = ({ namespace, name }: Fleet) => `/api/fleet/${encodeURIComponent(namespace)}/${encodeURIComponent(name)}`;

const often = 5_000;

export function useExplanation(fleet: Fleet, object: ObjectKey, seen: unknown) {
  return useQuery({
    queryKey: ['explain', fleet, object, seen],
    queryFn: () => request<Explanation>(`${base(fleet)}/explain?${objectQuery(object)}`),
    placeholderData: (before) => before,
  });
}

export function useOverrides(fleet: Fleet, object: ObjectKey) {
  return useQuery({
    queryKey: ['overrides', fleet, object],
    queryFn: () => request<Overrides>(`${base(fleet)}/overrides?${objectQuery(object)}`),
  });
}

export function useRollouts(fleet: Fleet) {
  return useQuery({
    queryKey: ['rollouts', fleet],
    queryFn: () => request<{ items: Rollout[] }>(`${base(fleet)}/rollouts`),
    refetchInterval: often,
  });
}

export function useDeletions(fleet: Fleet) {
  return useQuery({
    queryKey: ['deletions', fleet],
    queryFn: () => request<{ items: HeldDeletion[] }>(`${base(fleet)}/deletions`),
    refetchInterval: often,
  });
}

export function useMoves(fleet: Fleet, object?: ObjectKey) {
  return useQuery({
    queryKey: ['moves', fleet, object ?? null],
    queryFn: () =>
      request<{ items: Move[]; since?: string }>(`${base(fleet)}/moves${object ? `?${objectQuery(object)}` : ''}`),
    refetchInterval: 6 * often,
  });
}

export const askRollout = (fleet: Fleet, object: ObjectKey, action: RolloutAction, revision?: string) =>
  request(`${base(fleet)}/rollouts`, { method: 'POST', body: { ...object, action, revision } });

/** largestAnswer is how many deletions the server takes at once. */
const largestAnswer = 500;

export async function answerDeletions(fleet: Fleet, deletions: HeldDeletion[], answer: 'confirm' | 'keep') {
  for (let i = 0; i < deletions.length; i += largestAnswer) {
    const works = deletions.slice(i, i + largestAnswer).map(({ work }) => work);
    await request(`${base(fleet)}/deletions`, { method: 'POST', body: { works, answer } });
  }
}

export const plan = (fleet: Fleet, documents: string, namespace: string, isDeletion: boolean) =>
  request<Plan>(`${base(fleet)}/plan`, { method: 'POST', body: { documents, namespace, delete: isDeletion } });
