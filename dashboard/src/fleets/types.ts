// What the server tells of a fleet (docs/contracts/dashboard.md).
import type { ObjectReference } from '../api/types';

export type ObjectKey = Required<Pick<ObjectReference, 'apiVersion' | 'kind' | 'name'>> & { namespace?: string };

export interface Room {
  allocatable?: string;
  allocated?: string;
}

export interface MemberRow {
  uid: string;
  name: string;
  version?: string;
  mode?: string;
  region?: string;
  zones?: string[];
  ready?: string;
  conditions?: Record<string, string>;
  nodes?: { total?: number; ready?: number };
  cpu?: Room;
  memory?: Room;
  pods?: Room;
  taints?: string[];
  labels?: Record<string, string>;
}

export interface BindingCluster {
  name: string;
  replicas?: number;
  applied?: boolean;
  health?: string;
}

export interface BindingRow {
  uid: string;
  namespace?: string;
  name: string;
  object?: ObjectKey;
  policy?: string;
  replicas?: number;
  clusters?: BindingCluster[];
  scheduled?: string;
  message?: string;
  rollout?: { number?: number; phase?: string; wave?: number; waves?: number; message?: string };
}

export interface ExplainedCluster {
  name: string;
  chosen?: boolean;
  fits?: boolean;
  score?: number;
  weight?: number;
  available?: number;
  replicas?: number;
  reason?: string;
  message?: string;
  applied?: boolean;
  health?: string;
}

export interface Explanation {
  object?: ObjectKey;
  policy?: string;
  /** Objects that need this one, so that it follows them. */
  requiredBy?: string[];
  scheduled?: { status?: string; reason?: string; message?: string };
  strategy?: string;
  affinity?: string;
  skippedAffinities?: { name: string; message?: string }[];
  groups?: { name: string; clusters?: number; score?: number; chosen?: boolean }[];
  clusters?: ExplainedCluster[];
  omitted?: number;
  growth?: { name?: string; message?: string };
}

export interface OverrideField {
  path: string;
  before?: unknown;
  after?: unknown;
  policy?: string;
  rule?: string | number;
}

export interface Overrides {
  template?: unknown;
  clusters?: { name: string; fields?: OverrideField[]; error?: string }[];
}

export interface RolloutWave {
  name: string;
  clusters?: string[];
  updated?: number;
  healthy?: number;
  left?: boolean;
}

export interface Rollout {
  object: ObjectKey;
  policy?: string;
  rollout: {
    number: number;
    phase: string;
    reason?: string;
    message?: string;
    since?: string;
    currentWave?: number;
    waves?: RolloutWave[];
    revisions?: { revision: string; number: number; time: string }[];
    stableRevision?: string;
    updateRevision?: string;
  };
  control?: { paused?: boolean };
}

export interface HeldDeletion {
  work: { namespace: string; name: string };
  cluster: string;
  object: ObjectKey;
  since?: string;
}

export interface Move {
  time: string;
  object?: ObjectKey;
  reason?: string;
  message?: string;
  clusters?: string[];
  type?: string;
}

export type Effect = 'Added' | 'Removed' | 'Scaled' | 'Unchanged' | 'Kept';

export interface PlannedObject extends ObjectKey {
  policyNow?: string;
  policyThen?: string;
  clusters?: { name: string; effect: Effect; replicasNow?: number; replicasThen?: number }[];
  fields?: { cluster: string; path: string; now?: unknown; then?: unknown; setBy?: string }[];
  notes?: string[];
}

export interface Plan {
  documents: (ObjectKey & { action: string })[];
  objects: PlannedObject[];
  warnings?: { document: string; message: string }[];
  passedOver?: { policy: string; reason: string; objects: (ObjectKey & { policy: string })[] }[];
  held?: { cluster?: string; deletions: number; objects: number; allowance: number }[];
  summary: {
    examined: number;
    changed: number;
    added: number;
    removed: number;
    scaled: number;
    kept: number;
    losePolicy: number;
    getPolicy: number;
    replicasAdded: number;
    replicasRemoved: number;
    unplaced: number;
  };
}
