import { useQueries } from '@tanstack/react-query';

import { list } from '../api/objects';
import { resources } from '../api/paths';
import type { ProjectRow } from '../projects/projects';
import type { Shoot } from '../shoots/types';

/** How many projects of one person are read; who has more finds the project first. */
const most = 30;

/** useShootsOfProjects are the shoots of some projects, for who may not list those of all. */
export function useShootsOfProjects(projects: ProjectRow[]): Shoot[] {
  const namespaces = projects.flatMap(({ projectNamespace }) => projectNamespace ?? []).slice(0, most);
  return useQueries({
    queries: namespaces.map((namespace) => ({
      queryKey: ['shoots', namespace],
      queryFn: () => list<Shoot>('garden', resources.shoots, namespace),
      staleTime: 60_000,
      retry: false,
    })),
    combine: (results) => results.flatMap(({ data }) => data?.items ?? []),
  });
}
