// Messages of /api/live, as docs/contracts/dashboard.md says.
import type { Cluster } from '../api/paths';
import type { Status } from '../api/types';

export const subprotocol = 'trellis.live.v1';

export type View = 'row' | 'object' | 'meta' | 'rollout';

export interface Spec {
  cluster: Cluster;
  apiVersion: string;
  resource: string;
  namespace?: string;
  name?: string;
  labelSelector?: string;
  fieldSelector?: string;
  view: View;
  filter?: string;
}

interface Gone {
  uid: string;
  namespace?: string;
  name: string;
}

export type Message =
  | { type: 'snapshot'; id: string; items: unknown[]; first?: boolean }
  | { type: 'sync'; id: string; resourceVersion: string; total?: number }
  | { type: 'added' | 'changed'; id: string; item: unknown; resourceVersion: string }
  | { type: 'deleted'; id: string; item: Gone; resourceVersion: string }
  | { type: 'error'; id: string; error: Status; final: boolean }
  | { type: 'hello'; user: string }
  | { type: 'pong' };

/** sessionEnded is the code with which the server closes when the credential has ended. */
export const sessionEnded = 4401;

/** subscribeMessage writes all fields, as the server reads them. */
export function subscribeMessage(id: string, spec: Spec, resourceVersion: string) {
  return {
    type: 'subscribe',
    id,
    cluster: spec.cluster,
    apiVersion: spec.apiVersion,
    resource: spec.resource,
    namespace: spec.namespace ?? '',
    name: spec.name ?? '',
    labelSelector: spec.labelSelector ?? '',
    fieldSelector: spec.fieldSelector ?? '',
    view: spec.view,
    filter: spec.filter ?? '',
    resourceVersion,
  };
}
