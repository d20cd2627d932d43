// Reading and writing objects with the credential of whoever is logged in.
import { ApiError, follow, request } from './http';
import { apiVersion, pathOf, resources, withQuery, type Cluster, type Resource } from './paths';
import type { KubernetesList, KubernetesObject } from './types';

export interface Key {
  namespace?: string;
  name: string;
}

export function get<T>(cluster: Cluster, resource: Resource, key: Key, signal?: AbortSignal): Promise<T> {
  return request<T>(pathOf(cluster, resource, key), { signal });
}

/** list reads all parts of a list: the server gives at most 500 objects at once. */
export async function list<T>(cluster: Cluster, resource: Resource, namespace?: string): Promise<KubernetesList<T>> {
  const path = pathOf(cluster, resource, { namespace });
  const items: T[] = [];
  let next: string | undefined;
  do {
    const part = await request<KubernetesList<T>>(withQuery(path, { continue: next }));
    items.push(...part.items);
    next = part.metadata?.continue;
  } while (next);
  return { items };
}

interface Write {
  dryRun?: boolean;
}

const writing = (path: string, { dryRun }: Write, query: Record<string, string> = {}) =>
  withQuery(path, { fieldManager: 'dashboard', dryRun: dryRun ? 'All' : undefined, ...query });

export function create<T extends KubernetesObject>(
  cluster: Cluster,
  resource: Resource,
  object: T,
  write: Write = {},
): Promise<T> {
  const path = pathOf(cluster, resource, { namespace: object.metadata.namespace });
  return request(writing(path, write, { fieldValidation: 'Strict' }), {
    method: 'POST',
    body: { apiVersion: apiVersion(resource), kind: resource.kind, ...object },
  });
}

/** replace writes an object as it is in YAML. The garden refuses it if somebody changed it since it was read. */
export function replace<T>(
  cluster: Cluster,
  resource: Resource,
  key: Key,
  yaml: string,
  write: Write = {},
): Promise<T> {
  return request(writing(pathOf(cluster, resource, key), write, { fieldValidation: 'Strict' }), {
    method: 'PUT',
    text: yaml,
    contentType: 'application/yaml',
  });
}

/** createText is create for an object that is written as YAML. */
export function createText<T>(
  cluster: Cluster,
  resource: Resource,
  namespace: string | undefined,
  yaml: string,
  write: Write = {},
): Promise<T> {
  return request(writing(pathOf(cluster, resource, { namespace }), write, { fieldValidation: 'Strict' }), {
    method: 'POST',
    text: yaml,
    contentType: 'application/yaml',
  });
}

/** patch merges fields into an object; null removes one. */
export function patch<T>(
  cluster: Cluster,
  resource: Resource,
  key: Key,
  fields: unknown,
  write: Write = {},
): Promise<T> {
  return request(writing(pathOf(cluster, resource, key), write), {
    method: 'PATCH',
    body: fields,
    contentType: 'application/merge-patch+json',
  });
}

/** rewrites is how often an object that others change as well is read again. */
const rewrites = 5;

/**
 * amend patches with what follows from the latest object, for lists that are written as a whole: who has changed another
 * part of the object meanwhile, or the list, is not overwritten, and does not hinder.
 */
export async function amend<T extends KubernetesObject>(
  cluster: Cluster,
  resource: Resource,
  key: Key,
  change: (latest: T) => { metadata?: object; [field: string]: unknown },
): Promise<T> {
  for (let tries = 1; ; tries++) {
    const latest = await get<T>(cluster, resource, key);
    const { metadata, ...fields } = change(latest);
    const { resourceVersion } = latest.metadata;
    try {
      return await patch<T>(cluster, resource, key, { ...fields, metadata: { ...metadata, resourceVersion } });
    } catch (error) {
      if (tries === rewrites || !(error instanceof ApiError) || error.code !== 409) throw error;
    }
  }
}

export function remove(cluster: Cluster, resource: Resource, key: Key): Promise<unknown> {
  return request(pathOf(cluster, resource, key), { method: 'DELETE', body: {} });
}

/** linesOfLogs are shown of a log, the last ones. */
export const linesOfLogs = 500;

/** followLog tells what a container of a pod says, from the last lines on. */
export function followLog(
  cluster: Cluster,
  key: Key,
  container: string,
  take: (text: string) => void,
  signal: AbortSignal,
): Promise<void> {
  const path = pathOf(cluster, resources.pods, { ...key, subresource: 'log' });
  return follow(withQuery(path, { container, tailLines: linesOfLogs, follow: 'true' }), take, signal);
}
