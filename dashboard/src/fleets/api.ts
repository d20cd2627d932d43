// Requests about fleets.
import { useQuery } from '@tanstack/react-query';

import { request } from '../api/http';
import { resources, type Cluster } from '../api/paths';
import { useLiveList, useLiveLists } from '../live';
import type { LiveState } from '../live/list';
import { objectQuery, type RolloutAction } from './placement';
import type { Explanation, HeldDeletion, Move, ObjectKey, Overrides, Plan, Rollout } from './types';

export interface Fleet {
  namespace: string;
  name: string;
}

export const clusterOf = ({ namespace, name }: Fleet): Cluster => `shoot/${namespace}/${name}`;

const base = ({ namespace, name }: Fleet) => `/api/fleet/${encodeURIComponent(namespace)}/${encodeURIComponent(name)}`;

export function useExplanation(fleet: Fleet, object: ObjectKey, seen: unknown) {
  return useQuery({
    queryKey: ['explain', fleet, object, seen],
    queryFn: () => request<Explanation>(`${base(fleet)}/explain?${objectQuery(object)}`),
    placeholderData: (before) => before,
  });
}

export function useOverrides(fleet: Fleet, object: ObjectKey, seen: unknown) {
  return useQuery({
    queryKey: ['overrides', fleet, object, seen],
    queryFn: () => request<Overrides>(`${base(fleet)}/overrides?${objectQuery(object)}`),
    placeholderData: (before) => before,
  });
}

/** useRollouts are the changes that go from wave to wave. */
export const useRollouts = (fleet: Fleet): LiveState<Rollout> =>
  useLiveLists<Rollout>(
    [resources.resourcebindings, resources.clusterresourcebindings].map((resource) => ({
      cluster: clusterOf(fleet),
      resource,
      view: 'rollout',
      filter: 'staged:true',
    })),
  );

interface WorkRow {
  namespace: string;
  name: string;
  cluster: string;
  object: ObjectKey;
  since?: string;
}

/** useDeletions are those that wait for a confirmation. */
export function useDeletions(fleet: Fleet): LiveState<HeldDeletion> {
  const list = useLiveList<WorkRow>({ cluster: clusterOf(fleet), resource: resources.works, filter: 'held:true' });
  return { ...list, items: list.items.map(heldDeletion) };
}

const heldDeletion = ({ namespace, name, cluster, object, since }: WorkRow): HeldDeletion => ({
  work: { namespace, name },
  cluster,
  object,
  since,
});

/** useMoves are the moves of the last days. They are read anew when the fleet has kept more of them. */
export function useMoves(fleet: Fleet, object?: ObjectKey) {
  const kept = useLiveList<{ name: string; resourceVersion: string }>({
    cluster: clusterOf(fleet),
    resource: resources.configmaps,
    namespace: 'karmada-cluster',
    labelSelector: 'federation.trellis.garden/moves=true',
    view: 'meta',
  });
  return useQuery({
    queryKey: ['moves', fleet, object ?? null, kept.items.map(({ name, resourceVersion }) => [name, resourceVersion])],
    queryFn: () =>
      request<{ items: Move[]; since?: string }>(`${base(fleet)}/moves${object ? `?${objectQuery(object)}` : ''}`),
    placeholderData: (before) => before,
    enabled: kept.complete || kept.error !== undefined,
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
