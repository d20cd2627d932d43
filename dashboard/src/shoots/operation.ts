// How far an operation is, task by task. A Shoot names the tasks that run now and those that failed; what is done is
// known of having been seen.
import type { LastError, LastOperation } from '../api/types';

export type TaskState = 'done' | 'running' | 'failed';

export interface Task {
  name: string;
  state: TaskState;
  error?: string;
  codes?: string[];
}

export interface Course {
  /** Type of the operation, which a course is about. */
  type: string;
  progress: number;
  tasks: Task[];
}

const runs = (state: string) => state === 'Processing' || state === 'Pending' || state === 'Error';

/** runningTasks are those that a description names. */
export function runningTasks(operation: LastOperation): string[] {
  if (operation.state !== 'Processing') return [];
  return (operation.description ?? '')
    .split(', ')
    .map((name) => name.trim())
    .filter((name) => name !== '');
}

/**
 * follow adds what an operation says now to what was seen of it before. A new operation, which is one of another type or
 * with less progress than seen, begins anew.
 */
export function follow(before: Course | undefined, operation: LastOperation, errors: LastError[] = []): Course {
  const goesOn = before?.type === operation.type && before.progress <= operation.progress;
  const known = goesOn ? before.tasks : [];
  const running = new Set(runningTasks(operation));
  const failed = new Map(errors.filter(({ taskID }) => taskID).map((error) => [error.taskID as string, error]));
  const names = [...new Set([...known.map(({ name }) => name), ...failed.keys(), ...running])];
  return {
    type: operation.type,
    progress: operation.progress,
    tasks: names.map((name) => taskOf(name, running, failed.get(name))),
  };
}

function taskOf(name: string, running: Set<string>, error: LastError | undefined): Task {
  if (running.has(name)) return { name, state: 'running', error: error?.description, codes: error?.codes };
  if (error) return { name, state: 'failed', error: error.description, codes: error.codes };
  return { name, state: 'done' };
}

/** operationsOf are the operations that wait in the annotation. */
export function operationsOf(annotations: Record<string, string> = {}): string[] {
  return (annotations['gardener.cloud/operation'] ?? '').split(';').filter((operation) => operation !== '');
}

/** isWorking tells whether somebody works on the shoot, or is about to. */
export const isWorking = (operation: LastOperation | undefined) => operation !== undefined && runs(operation.state);
