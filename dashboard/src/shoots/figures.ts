// What machines use, of the metrics that the cluster has of itself.
import { useQuery } from '@tanstack/react-query';

import { list } from '../api/objects';
import type { Cluster, Resource } from '../api/paths';
import type { KubernetesObject } from '../api/types';
import { parseQuantity } from '../fleets/quantity';
import { number } from '../i18n/time';

const nodeMetrics: Resource = { group: 'metrics.k8s.io', version: 'v1beta1', resource: 'nodes', kind: 'NodeMetrics' };

interface NodeMetrics extends KubernetesObject {
  usage: { cpu?: string; memory?: string };
}

export interface Figures {
  cpu: number;
  /** Of 2^30 bytes. */
  memory: number;
}

/** figuresOf is what each machine uses, by its name. */
function figuresOf(metrics: NodeMetrics[]): Map<string, Figures> {
  return new Map(
    metrics.map(({ metadata: { name }, usage }) => [
      name,
      { cpu: parseQuantity(usage.cpu) ?? 0, memory: (parseQuantity(usage.memory) ?? 0) / 2 ** 30 },
    ]),
  );
}

export const memoryText = ({ memory }: Figures) => `${number(memory)} GiB`;

/** useFigures are those of a cluster; undefined where it has none, or not for who asks. */
export function useFigures(cluster: Cluster): Map<string, Figures> | undefined {
  const { data } = useQuery({
    queryKey: ['figures', cluster],
    queryFn: () => list<NodeMetrics>(cluster, nodeMetrics),
    select: ({ items }) => figuresOf(items),
    refetchInterval: 30_000,
    retry: false,
  });
  return data;
}
