// What operators look after, as far as the pages read it.
import type { Condition, KubernetesObject, LastError, LastOperation, ObjectReference } from '../api/types';

export interface Seed extends KubernetesObject {
  spec: {
    provider: { type: string; region: string; zones?: string[] };
    taints?: { key: string; value?: string }[];
    settings?: { scheduling?: { visible: boolean } };
    backup?: { provider: string; region?: string };
    ingress?: { domain: string };
    networks?: { nodes?: string; pods?: string; services?: string };
  };
  status?: {
    gardener?: { version?: string };
    kubernetesVersion?: string;
    conditions?: Condition[];
    allocatable?: Record<string, string>;
    capacity?: Record<string, string>;
    clientCertificateExpirationTimestamp?: string;
    lastOperation?: LastOperation;
  };
}

export interface ControllerInstallation extends KubernetesObject {
  spec: { registrationRef: ObjectReference; seedRef?: ObjectReference };
  status?: { conditions?: Condition[] };
}

export interface ManagedSeed extends KubernetesObject {
  spec: { shoot?: { name: string } };
  status?: { conditions?: Condition[] };
}

export interface BackupBucket extends KubernetesObject {
  spec: { provider: { type: string; region: string }; seedName?: string };
  status?: { lastOperation?: LastOperation; lastError?: LastError };
}

export interface BackupEntry extends KubernetesObject {
  spec: { bucketName: string; seedName?: string; shootRef?: ObjectReference };
  status?: { lastOperation?: LastOperation; lastError?: LastError };
}
