// Objects as YAML that people edit.
import { isMap, isScalar, LineCounter, parseDocument, stringify, type Node } from 'yaml';

import type { KubernetesObject, Status } from '../api/types';

/** editable is an object without what the garden alone writes. The version stays: what others write is not lost. */
export function editable(object: KubernetesObject): KubernetesObject {
  const { status: _, metadata, ...rest } = object as KubernetesObject & { status?: unknown };
  const { uid, creationTimestamp, generation, deletionTimestamp, ...kept } = metadata;
  void [_, uid, creationTimestamp, generation, deletionTimestamp];
  const { apiVersion, kind, ...others } = rest;
  return { apiVersion, kind, metadata: kept, ...others };
}

export const toYAML = (object: unknown) => stringify(object, { lineWidth: 0 });

export interface Fault {
  message: string;
  from: number;
  to: number;
}

/** syntaxFaults are where a text is no YAML. */
export function syntaxFaults(text: string): Fault[] {
  return parseDocument(text, { lineCounter: new LineCounter() }).errors.map(({ message, pos: [from, to] }) => ({
    message: message.split('\n')[0] ?? message,
    from: Math.min(from, text.length),
    to: Math.min(to, text.length),
  }));
}

/** stepsOf reads a field's path, such as spec.provider.workers[0].name or metadata.annotations[a.b/c]. */
export function stepsOf(field: string): (string | number)[] {
  return [...field.matchAll(/\[([^\]]*)\]|([^.[\]]+)/g)].map(([, inBrackets, name]) =>
    inBrackets === undefined ? (name ?? '') : /^\d+$/.test(inBrackets) ? Number(inBrackets) : inBrackets,
  );
}

/** statusFaults are where a refusal is about; of a field that is absent, the nearest above it. */
export function statusFaults(text: string, status: Status): Fault[] {
  const document = parseDocument(text);
  return (status.details?.causes ?? []).map(({ field = '', message = '' }) => {
    const [from, to] = rangeOf(document.contents, stepsOf(field));
    return { message: field ? `${field}: ${message}` : message, from, to };
  });
}

function rangeOf(root: Node | null, steps: (string | number)[]): [number, number] {
  let found: Node | null = root;
  let range: [number, number] = [0, 0];
  for (const step of steps) {
    if (isMap(found)) {
      const pair = found.items.find(({ key }) => isScalar(key) && String(key.value) === String(step));
      const key = pair?.key as Node | undefined;
      if (!pair || !key?.range) break;
      range = [key.range[0], key.range[1]];
      found = pair.value as Node | null;
    } else {
      const item = found && 'items' in found ? ((found.items as Node[])[Number(step)] ?? null) : null;
      if (!item?.range) break;
      range = [item.range[0], Math.min(item.range[1], item.range[0] + 1)];
      found = item;
    }
  }
  return range;
}
