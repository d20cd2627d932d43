// What somebody may do: asked of the server in batches, so that a page costs one request.
import { useQuery } from '@tanstack/react-query';

import { request } from './http';
import type { Cluster, Resource } from './paths';

export interface Check {
  verb: string;
  resource: Resource;
  subresource?: string;
  namespace?: string;
  name?: string;
}

interface WireCheck {
  verb: string;
  group: string;
  resource: string;
  subresource: string;
  namespace: string;
  name: string;
}

/** largestBatch is how many checks the server answers at once. */
const largestBatch = 100;

export const wireCheck = (check: Check): WireCheck => ({
  verb: check.verb,
  group: check.resource.group,
  resource: check.resource.resource,
  subresource: check.subresource ?? '',
  namespace: check.namespace ?? '',
  name: check.name ?? '',
});

/** batches divides checks into as few requests as possible. */
export function batches<T>(checks: T[], size: number): T[][] {
  return Array.from({ length: Math.ceil(checks.length / size) }, (_, i) => checks.slice(i * size, (i + 1) * size));
}

async function ask(cluster: Cluster, checks: WireCheck[]): Promise<boolean[]> {
  const answers = await Promise.all(
    batches(checks, largestBatch).map((batch) =>
      request<{ allowed: boolean[] }>('/api/rights', { method: 'POST', body: { cluster, checks: batch } }),
    ),
  );
  return answers.flatMap(({ allowed }) => allowed);
}

/**
 * useRights tells for each name whether its check is allowed. Until the answer is there, and if there is none, nothing
 * is: what is not known to be allowed is not offered.
 */
export function useRights<Name extends string>(cluster: Cluster, checks: Record<Name, Check>): Record<Name, boolean> {
  return useKnownRights(cluster, checks) ?? mapNames(checks, () => false);
}

/** useKnownRights is useRights where it matters whether the answer is there; undefined until it is. */
export function useKnownRights<Name extends string>(
  cluster: Cluster,
  checks: Record<Name, Check>,
): Record<Name, boolean> | undefined {
  const names = Object.keys(checks) as Name[];
  const wire = names.map((name) => wireCheck(checks[name]));
  const { data, error } = useQuery({
    queryKey: ['rights', cluster, wire],
    queryFn: () => ask(cluster, wire),
    staleTime: 60_000,
  });
  if (!data && !error) return undefined;
  return mapNames(checks, (i) => data?.[i] ?? false);
}

const mapNames = <Name extends string>(checks: Record<Name, Check>, isAllowed: (i: number) => boolean) =>
  Object.fromEntries(Object.keys(checks).map((name, i) => [name, isAllowed(i)])) as Record<Name, boolean>;
