import { resources } from '../api/paths';
import { useRights } from '../api/rights';

/**
 * useSeedRight is whether one gets into control planes of a seed: as administrator of the seeds that are shoots of the
 * garden, or by the access to this one that operators have stored.
 */
export function useSeedRight(seed: string | undefined): boolean {
  const namespace = 'garden';
  const { managed, stored } = useRights('garden', {
    managed: { verb: 'create', resource: resources.shoots, subresource: 'adminkubeconfig', namespace },
    stored: { verb: 'get', resource: resources.secrets, namespace, name: `${seed ?? ''}.login` },
  });
  return seed !== undefined && (managed || stored);
}

/** useShootRights is what one may do with the shoots of a namespace. */
export function useShootRights(namespace: string) {
  const resource = resources.shoots;
  return useRights('garden', {
    list: { verb: 'list', resource, namespace },
    create: { verb: 'create', resource, namespace },
    change: { verb: 'patch', resource, namespace },
    delete: { verb: 'delete', resource, namespace },
    admin: { verb: 'create', resource, subresource: 'adminkubeconfig', namespace },
    viewer: { verb: 'create', resource, subresource: 'viewerkubeconfig', namespace },
    events: { verb: 'list', resource: resources.events, namespace },
  });
}
