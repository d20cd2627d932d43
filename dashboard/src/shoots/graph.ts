// The graph of an operation, which gardenlet tells in a ConfigMap beside the Shoot. Whoever may write that may write
// anything into it, so it is checked before it is shown. Its form stands in docs/contracts/control-plane.md.
import type { KubernetesObject, LastError } from '../api/types';
import type { MessageKey, Values } from '../i18n';
import type { Tone } from '../ui/Tone';
import type { Shoot } from './types';

const format = 1;
const maxSize = 64 * 1024;
const maxTasks = 256;
const maxName = 128;
const maxText = 400;

export const graphStates = ['Pending', 'Running', 'Succeeded', 'Failed', 'Skipped'] as const;
type GraphState = (typeof graphStates)[number];

export interface GraphTask {
  name: string;
  /** Places of the tasks that this one depends on, all of them earlier. */
  after?: number[];
  state: GraphState;
  started?: string;
  ended?: string;
  error?: string;
}

export interface Graph {
  format: number;
  type: string;
  generation: number;
  started: string;
  ended?: string;
  error?: string;
  tasks: GraphTask[];
  omitted?: number;
}

export interface GraphMap extends KubernetesObject {
  data?: Record<string, string>;
}

/** Fault is why a graph is not shown. */
export interface Fault {
  key: MessageKey;
  values?: Values;
}

export const graphName = (shoot: string) => `${shoot}.operation`;

/** graphIn reads the graph of a shoot; nothing if it is of an earlier shoot of its name. */
export function graphIn(map: GraphMap, { metadata: shoot }: Shoot): { graph?: Graph; fault?: Fault } {
  const { labels = {}, ownerReferences = [] } = map.metadata;
  const owner = ownerReferences.find(({ kind, name }) => kind === 'Shoot' && name === shoot.name);
  const isMarked = labels['shoot.gardener.cloud/name'] === shoot.name && labels['gardener.cloud/role'] === 'operation';
  if (!owner || !isMarked) return { fault: { key: 'graph.foreign', values: { name: map.metadata.name } } };
  return owner.uid === shoot.uid ? parseGraph(map.data?.graph ?? '') : {};
}

/** parseGraph reads a graph that anybody may have written. */
export function parseGraph(text: string): { graph?: Graph; fault?: Fault } {
  if (text.length > maxSize) return { fault: { key: 'graph.tooLarge', values: { limit: maxSize / 1024 } } };
  let read: unknown;
  try {
    read = JSON.parse(text);
  } catch {
    return { fault: { key: 'graph.malformed' } };
  }
  const graph = read as Graph | null;
  if (typeof graph !== 'object' || graph === null) return { fault: { key: 'graph.malformed' } };
  if (graph.format !== format) return { fault: { key: 'graph.format', values: { format: String(graph.format) } } };
  const tasks: unknown = graph.tasks ?? [];
  if (!isHead(graph) || !Array.isArray(tasks) || tasks.length > maxTasks || !tasks.every(isTask)) {
    return { fault: { key: 'graph.malformed' } };
  }
  if (new Set(tasks.map(({ name }) => name)).size < tasks.length) return { fault: { key: 'graph.malformed' } };
  return { graph: { ...graph, tasks } };
}

const isText = (value: unknown, limit: number) => typeof value === 'string' && value.length <= limit;
const isAbsentOr = (value: unknown, check: (value: unknown) => boolean) => value === undefined || check(value);
const isTime = (value: unknown) => isText(value, 64) && !Number.isNaN(Date.parse(value as string));
const isCount = (value: unknown) => Number.isSafeInteger(value) && (value as number) >= 0;

const isHead = ({ type, generation, started, ended, error, omitted }: Graph) =>
  isText(type, maxName) &&
  isCount(generation) &&
  isTime(started) &&
  isAbsentOr(ended, isTime) &&
  isAbsentOr(error, (value) => isText(value, maxText)) &&
  isAbsentOr(omitted, isCount);

function isTask(value: unknown, place: number): value is GraphTask {
  if (typeof value !== 'object' || value === null) return false;
  const { name, after, state, started, ended, error } = value as Record<string, unknown>;
  const isEarlier = (other: unknown, i: number, all: unknown[]) =>
    isCount(other) && (other as number) < place && (i === 0 || (all[i - 1] as number) < (other as number));
  return (
    isText(name, maxName) &&
    name !== '' &&
    isAbsentOr(after, (places) => Array.isArray(places) && places.every(isEarlier)) &&
    graphStates.includes(state as GraphState) &&
    isAbsentOr(started, isTime) &&
    isAbsentOr(ended, isTime) &&
    isAbsentOr(error, (text) => isText(text, maxText))
  );
}

/** isPresent tells whether a graph is that of the operation which the shoot's status is about, and not of a try before. */
export function isPresent(graph: Graph, { status }: Shoot): boolean {
  const last = status?.lastOperation;
  if (!last || graph.type !== last.type || graph.generation !== (status.observedGeneration ?? 0)) return false;
  const isOver = graph.ended !== undefined;
  switch (last.state) {
    case 'Processing':
      // What began after the end of this one is the next try.
      return !graph.ended || Date.parse(last.lastUpdateTime ?? '') <= Date.parse(graph.ended);
    case 'Error':
    case 'Failed':
      return isOver && failedAs(graph, status.lastErrors ?? []);
    case 'Succeeded':
      return isOver && failedAs(graph, []);
    default:
      return false;
  }
}

function failedAs({ tasks, error, omitted }: Graph, errors: LastError[]): boolean {
  const told = new Set(errors.flatMap(({ taskID }) => taskID ?? []));
  const outside = errors.some(({ taskID }) => taskID === undefined);
  if (outside !== (error !== undefined)) return false;
  const failed = tasks.filter(({ state }) => state === 'Failed');
  return (omitted ?? 0) > 0 || (failed.length === told.size && failed.every(({ name }) => told.has(name)));
}

/** stagesOf are places of tasks by how many come before them at most, one after another. */
export function stagesOf(tasks: GraphTask[]): number[][] {
  const depths: number[] = [];
  const stages: number[][] = [];
  tasks.forEach(({ after = [] }, place) => {
    const depth = Math.max(-1, ...after.map((earlier) => depths[earlier] ?? 0)) + 1;
    depths.push(depth);
    (stages[depth] ??= []).push(place);
  });
  return stages;
}

export const graphTone = (state: GraphState): Tone =>
  (({ Succeeded: 'good', Running: 'busy', Failed: 'bad' }) as Partial<Record<GraphState, Tone>>)[state] ?? 'neutral';

interface Stage {
  /** From 1. */
  number: number;
  done: number;
  total: number;
  /** What is looked at: what runs and what failed. */
  open: GraphTask[];
}

/** stageList counts the tasks of each stage. Those that are skipped are not asked for in this operation. */
export function stageList(tasks: GraphTask[]): Stage[] {
  return stagesOf(tasks)
    .map((places, i) => {
      const asked = places.flatMap((place) => tasks[place] ?? []).filter(({ state }) => state !== 'Skipped');
      return {
        number: i + 1,
        done: asked.filter(({ state }) => state === 'Succeeded').length,
        total: asked.length,
        open: asked.filter(({ state }) => state === 'Running' || state === 'Failed'),
      };
    })
    .filter(({ total }) => total > 0);
}

interface PlacedTask {
  id: string;
  x: number;
  y: number;
  task: GraphTask;
}

const columnWidth = 280;
const rowHeight = 96;
/** tallest is how many tasks stand below each other: a stage of more has several columns. */
const tallest = 6;

/** layoutOf places tasks by their stages, from left to right. */
export function layoutOf(tasks: GraphTask[]): { nodes: PlacedTask[]; edges: [string, string][] } {
  const nodes: PlacedTask[] = [];
  let column = 0;
  for (const places of stagesOf(tasks)) {
    const columns = Math.ceil(places.length / tallest);
    const rows = Math.ceil(places.length / columns);
    places.forEach((place, i) => {
      const task = tasks[place];
      if (!task) return;
      const inColumn = Math.floor(i / rows);
      const count = Math.min(rows, places.length - inColumn * rows);
      const y = (i % rows) * rowHeight + ((tallest - count) * rowHeight) / 2;
      nodes.push({ id: String(place), x: (column + inColumn) * columnWidth, y, task });
    });
    column += columns;
  }
  const edges = tasks.flatMap(({ after = [] }, place) =>
    after.map((earlier): [string, string] => [String(earlier), String(place)]),
  );
  return { nodes, edges };
}

/** focusOf are the tasks to look at first: what failed or runs, else what is next; nothing means all. */
export function focusOf(tasks: GraphTask[]): string[] {
  const at = (...states: GraphState[]) =>
    tasks.flatMap(({ state }, place) => (states.includes(state) ? [String(place)] : []));
  const open = at('Failed', 'Running');
  return open.length > 0 ? open : at('Pending').slice(0, tallest);
}
