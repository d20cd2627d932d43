import { useQueries } from '@tanstack/react-query';

import { list } from '../api/objects';
import { resources } from '../api/paths';
import { ApiError } from '../api/http';
import type { LiveState } from '../live/list';
import type { ProjectRow } from '../projects/projects';
import type { Shoot } from '../shoots/types';

/** How many projects of one person are read; who has more finds the project first. */
const most = 30;

const isFailure = (error: unknown): error is ApiError => error instanceof ApiError && error.code !== 403;

/**
 * useShootsOfProjects are the shoots of some projects, for who may not list those of all. Projects whose shoots they may
 * not list either have none for them.
 */
export function useShootsOfProjects(projects: ProjectRow[] | undefined): LiveState<Shoot> {
  const namespaces = (projects ?? []).flatMap(({ projectNamespace }) => projectNamespace ?? []).slice(0, most);
  return useQueries({
    queries: namespaces.map((namespace) => ({
      queryKey: ['shoots', namespace],
      queryFn: () => list<Shoot>('garden', resources.shoots, namespace),
      staleTime: 60_000,
      retry: false,
    })),
    combine: (results) => ({
      items: results.flatMap(({ data }) => data?.items ?? []),
      complete: projects !== undefined && results.every(({ isPending }) => !isPending),
      error: results.map(({ error }) => error).find(isFailure)?.status,
    }),
  });
}
