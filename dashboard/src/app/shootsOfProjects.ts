import { resources } from '../api/paths';
import type { Status } from '../api/types';
import { useLiveLists } from '../live';
import type { LiveState } from '../live/list';
import type { ProjectRow } from '../projects/projects';
import type { ShootRow } from '../shoots/types';

/** How many projects of one person are watched; who has more finds the project first. */
const most = 30;

const isForbidden = ({ code }: Status) => code === 403;

/**
 * useShootsOfProjects are the shoots of some projects, for who may not list those of all. Projects whose shoots they may
 * not list either have none for them.
 */
export function useShootsOfProjects(projects: ProjectRow[] | undefined, filter = ''): LiveState<ShootRow> {
  const namespaces = (projects ?? []).flatMap(({ projectNamespace }) => projectNamespace ?? []).slice(0, most);
  const { items, complete, error } = useLiveLists<ShootRow>(
    namespaces.map((namespace) => ({ cluster: 'garden', resource: resources.shoots, namespace, filter })),
    isForbidden,
  );
  return { items, complete: projects !== undefined && complete, error };
}
