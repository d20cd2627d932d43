// What all objects of Kubernetes' APIs have, as far as the pages read it.

interface ObjectMeta {
  name: string;
  namespace?: string;
  uid?: string;
  generation?: number;
  resourceVersion?: string;
  creationTimestamp?: string;
  deletionTimestamp?: string;
  labels?: Record<string, string>;
  annotations?: Record<string, string>;
  finalizers?: string[];
  ownerReferences?: { kind: string; name: string; uid: string }[];
}

export interface KubernetesObject {
  apiVersion?: string;
  kind?: string;
  metadata: ObjectMeta;
}

export interface KubernetesList<T> {
  items: T[];
  metadata?: { continue?: string; resourceVersion?: string };
}

interface Cause {
  field?: string;
  reason?: string;
  message?: string;
}

export interface Status {
  kind?: 'Status';
  code?: number;
  reason?: string;
  message?: string;
  details?: { causes?: Cause[]; retryAfterSeconds?: number };
}

export interface Condition {
  type: string;
  status: string;
  reason?: string;
  message?: string;
  lastTransitionTime?: string;
  lastUpdateTime?: string;
  codes?: string[];
}

export interface LastOperation {
  type: string;
  state: string;
  progress: number;
  description?: string;
  lastUpdateTime?: string;
}

export interface LastError {
  description: string;
  taskID?: string;
  codes?: string[];
  lastUpdateTime?: string;
}

export interface Subject {
  kind: string;
  name: string;
  namespace?: string;
  apiGroup?: string;
}

export interface ObjectReference {
  apiVersion?: string;
  kind?: string;
  namespace?: string;
  name?: string;
}
