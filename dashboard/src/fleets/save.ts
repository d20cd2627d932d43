// Documents that are saved in a fleet after their plan was seen: by server-side apply, as kubectl does.
import { parseAllDocuments, stringify } from 'yaml';

import { request } from '../api/http';
import { pathOf, withQuery, type Resource } from '../api/paths';
import type { KubernetesObject } from '../api/types';
import type { Fault } from '../editor/document';
import { clusterOf, type Fleet } from './api';

/** Target is an object and where it is written. */
export interface Target {
  object: KubernetesObject;
  resource: Resource;
  /** Absent for objects of the whole cluster. */
  namespace?: string;
}

/** documentFaults are where a text of several documents is no YAML. */
export function documentFaults(text: string): Fault[] {
  return [...parseAllDocuments(text)].flatMap((document) =>
    document.errors.map(({ message, pos: [from, to] }) => ({
      message: message.split('\n')[0] ?? message,
      from: Math.min(from, text.length),
      to: Math.min(to, text.length),
    })),
  );
}

/** objectsIn are the objects of all documents, also those in lists. Documents that are empty have none. */
export function objectsIn(text: string): KubernetesObject[] {
  const found = [...parseAllDocuments(text)].map((document): unknown => document.toJS());
  return found.flatMap((each) => {
    const list = each as (KubernetesObject & { items?: KubernetesObject[] }) | null;
    if (!list) return [];
    return list.kind?.endsWith('List') && list.items ? list.items : [list];
  });
}

interface Discovered {
  resources: { name: string; kind: string; namespaced: boolean }[];
}

/** targetsOf asks the fleet where the objects of a text are written. What it does not serve is an error. */
export async function targetsOf(fleet: Fleet, text: string, namespace: string): Promise<Target[]> {
  const asked = new Map<string, Promise<Discovered>>();
  const discover = (apiVersion: string) => {
    const path = `/api/${clusterOf(fleet)}/${apiVersion.includes('/') ? 'apis' : 'api'}/${apiVersion}`;
    const answer = asked.get(apiVersion) ?? request<Discovered>(path);
    asked.set(apiVersion, answer);
    return answer;
  };
  return Promise.all(
    objectsIn(text).map(async (object) => {
      const { apiVersion = '', kind = '', metadata } = object;
      const { resources } = await discover(apiVersion);
      const found = resources.find((each) => each.kind === kind && !each.name.includes('/'));
      if (!found) throw new Error(`${apiVersion} ${kind}`);
      const [version = '', group = ''] = apiVersion.split('/').reverse();
      return {
        object,
        resource: { group, version, resource: found.name, kind },
        namespace: found.namespaced ? (metadata.namespace ?? namespace) : undefined,
      };
    }),
  );
}

/**
 * save writes the targets one after the other, or deletes them, the last first: policies go before what they are of.
 * It ends at the first that is refused; what was done until then stays, and may be done again.
 */
export async function save(fleet: Fleet, targets: Target[], isDeletion: boolean) {
  for (const { object, resource, namespace } of isDeletion ? targets.toReversed() : targets) {
    const { name } = object.metadata;
    const path = pathOf(clusterOf(fleet), resource, { namespace, name });
    if (isDeletion) {
      await request(path, { method: 'DELETE', body: {} });
      continue;
    }
    await request(withQuery(path, { fieldManager: 'dashboard', fieldValidation: 'Strict' }), {
      method: 'PATCH',
      text: stringify(namespace ? { ...object, metadata: { ...object.metadata, namespace } } : object),
      contentType: 'application/apply-patch+yaml',
    });
  }
}
