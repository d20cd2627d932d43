import { resources } from '../api/paths';
import { useRights } from '../api/rights';

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
