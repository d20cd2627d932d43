// Credentials of a project for infrastructures.
import type { KubernetesObject, ObjectReference } from '../api/types';

export interface CredentialsBinding extends KubernetesObject {
  provider: { type: string };
  credentialsRef: ObjectReference;
  quotas?: ObjectReference[];
}

/** bindingOf is a CredentialsBinding for a Secret, of the same name unless it is another's, and quotas for it. */
export function bindingOf(
  namespace: string,
  name: string,
  provider: string,
  { quotas = [], secret = name }: { quotas?: string[]; secret?: string } = {},
): CredentialsBinding {
  return {
    metadata: { namespace, name },
    provider: { type: provider },
    credentialsRef: { apiVersion: 'v1', kind: 'Secret', namespace, name: secret },
    ...(quotas.length > 0 && {
      quotas: quotas.map((quota) => ({
        apiVersion: 'core.gardener.cloud/v1beta1',
        kind: 'Quota',
        namespace,
        name: quota,
      })),
    }),
  };
}

/** parseData reads lines of name=value. A value may have any character but the end of a line. */
export function parseData(text: string): Record<string, string> | undefined {
  const data: Record<string, string> = {};
  for (const line of text.split('\n')) {
    if (line.trim() === '') continue;
    const match = /^\s*([-._a-zA-Z0-9]+)\s*=(.*)$/.exec(line);
    if (!match) return undefined;
    data[match[1] ?? ''] = (match[2] ?? '').trim();
  }
  return data;
}
