// Where objects are, and what is wrong there.
import type { Tone } from '../ui/Tone';
import type { BindingCluster, BindingRow, Effect, HeldDeletion, ObjectKey, Rollout } from './types';

/** objectName is how people call an object. */
export const objectName = ({ kind, namespace, name }: ObjectKey) =>
  `${kind} ${namespace ? `${namespace}/` : ''}${name}`;

/** objectQuery names an object in an address, of the pages and of the server alike. */
export function objectQuery({ apiVersion, kind, namespace, name }: ObjectKey): string {
  return String(new URLSearchParams({ apiVersion, kind, ...(namespace ? { namespace } : {}), name }));
}

/** objectIn reads an object from an address; undefined if it names none. */
export function objectIn(search: URLSearchParams): ObjectKey | undefined {
  const [apiVersion, kind, name] = ['apiVersion', 'kind', 'name'].map((field) => search.get(field) ?? '');
  if (!apiVersion || !kind || !name) return undefined;
  return { apiVersion, kind, namespace: search.get('namespace') ?? undefined, name };
}

/** clusterTone is how an object is in a member. */
export function clusterTone({ applied, health }: Pick<BindingCluster, 'applied' | 'health'>): Tone {
  if (health === 'Unhealthy') return 'bad';
  if (applied !== true) return 'busy';
  return health === 'Healthy' ? 'good' : 'neutral';
}

/** bindingTone is how an object is in all its members: as in the worst of them. */
export function bindingTone({ scheduled, clusters = [] }: BindingRow): Tone {
  if (scheduled === 'False') return 'bad';
  const tones = clusters.map(clusterTone);
  return (
    (['bad', 'busy', 'neutral'] as const).find((tone) => tones.includes(tone)) ??
    (tones.length > 0 ? 'good' : 'warning')
  );
}

export interface MapNode {
  id: string;
  x: number;
  y: number;
  label: string;
  detail?: string;
  tone: Tone;
}

const columnWidth = 280;
const rowHeight = 74;

/** mapOf places an object, its policy and the members that have it, from left to right. */
export function mapOf(
  object: string,
  policy: string | undefined,
  clusters: (BindingCluster & { replicas?: number })[],
): { nodes: MapNode[]; edges: [string, string][] } {
  const middle = (Math.max(clusters.length - 1, 0) * rowHeight) / 2;
  const nodes: MapNode[] = [{ id: 'object', x: policy ? columnWidth : 0, y: middle, label: object, tone: 'neutral' }];
  const edges: [string, string][] = [];
  if (policy) {
    nodes.unshift({ id: 'policy', x: 0, y: middle, label: policy, tone: 'neutral' });
    edges.push(['policy', 'object']);
  }
  clusters.forEach((cluster, i) => {
    const id = `cluster ${cluster.name}`;
    const x = (policy ? 2 : 1) * columnWidth;
    nodes.push({
      id,
      x,
      y: i * rowHeight,
      label: cluster.name,
      detail: cluster.replicas === undefined ? undefined : String(cluster.replicas),
      tone: clusterTone(cluster),
    });
    edges.push(['object', id]);
  });
  return { nodes, edges };
}

export type RolloutAction = 'pause' | 'resume' | 'undo';

/** rolloutActions are what can be asked of a rollout now. */
export function rolloutActions({ rollout, control }: Rollout): RolloutAction[] {
  const undo: RolloutAction[] =
    (rollout.revisions?.length ?? 0) > 1 || rollout.stableRevision !== rollout.updateRevision ? ['undo'] : [];
  switch (rollout.phase) {
    case 'Progressing':
    case 'Soaking':
      return [control?.paused ? 'resume' : 'pause', ...undo];
    case 'Paused':
    case 'Failed':
      return ['resume', ...undo];
    case 'Completed':
      return undo;
    default:
      return [];
  }
}

export const rolloutTone = (phase: string): Tone =>
  (({ Completed: 'good', Failed: 'bad', RolledBack: 'warning', Paused: 'warning' }) as Record<string, Tone>)[phase] ??
  'busy';

export const effectTone = (effect: Effect): Tone =>
  (({ Added: 'good', Removed: 'bad', Scaled: 'busy', Kept: 'warning', Unchanged: 'neutral' }) as Record<Effect, Tone>)[
    effect
  ];

/** byCluster groups held deletions, those of most objects first. */
export function byCluster(deletions: HeldDeletion[]): { cluster: string; deletions: HeldDeletion[] }[] {
  const groups = Map.groupBy(deletions, ({ cluster }) => cluster);
  return [...groups]
    .map(([cluster, deletions]) => ({ cluster, deletions }))
    .sort((a, b) => b.deletions.length - a.deletions.length || a.cluster.localeCompare(b.cluster));
}

/** shown writes a value of a field for people; what is absent is told apart from what is empty. */
export const shown = (value: unknown): string | undefined =>
  value === undefined ? undefined : typeof value === 'string' ? value : JSON.stringify(value);
