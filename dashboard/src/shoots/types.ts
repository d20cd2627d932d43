// Shoots and cloud profiles, as far as the pages read them.
import type { Condition, KubernetesObject, LastError, LastOperation } from '../api/types';

/** ShootRow is a shoot in a list. */
export interface ShootRow {
  uid: string;
  namespace: string;
  name: string;
  created?: string;
  deleting?: boolean;
  project?: string;
  profile?: string;
  /** Whether that is a NamespacedCloudProfile. */
  ownProfile?: boolean;
  /** When the backups were restored on trial last. */
  drill?: string;
  provider?: string;
  region?: string;
  version?: string;
  purpose?: string;
  seed?: string;
  technicalID?: string;
  workers?: string[];
  ha?: string;
  hibernated?: boolean;
  fleet?: boolean;
  workerless?: boolean;
  creator?: string;
  status?: 'healthy' | 'progressing' | 'unhealthy' | 'unknown';
  operation?: { type: string; state: string; progress?: number; time?: string; description?: string };
  conditions?: Record<string, string>;
  codes?: string[];
  error?: string;
}

export interface Worker {
  name: string;
  minimum: number;
  maximum: number;
  machine: { type: string; architecture?: string; image?: { name: string; version?: string } };
  volume?: { type?: string; size: string };
  dataVolumes?: { type?: string; size: string }[];
  zones?: string[];
  kubernetes?: { version?: string };
  labels?: Record<string, string>;
  taints?: { key: string; value?: string; effect: string }[];
  updateStrategy?: string;
}

export interface HibernationSchedule {
  start?: string;
  end?: string;
  location?: string;
}

export interface ShootSpec {
  cloudProfile?: { kind: string; name: string };
  cloudProfileName?: string;
  credentialsBindingName?: string;
  secretBindingName?: string;
  region: string;
  seedName?: string;
  purpose?: string;
  kubernetes: { version: string };
  networking?: { type?: string; pods?: string; services?: string; nodes?: string };
  provider: { type: string; workers?: Worker[] };
  hibernation?: { enabled?: boolean; schedules?: HibernationSchedule[] };
  maintenance?: {
    timeWindow?: { begin: string; end: string };
    autoUpdate?: { kubernetesVersion: boolean; machineImageVersion?: boolean };
  };
  controlPlane?: { highAvailability?: { failureTolerance: { type: string } } };
  addons?: { nginxIngress?: { enabled?: boolean } };
  extensions?: { type: string; disabled?: boolean }[];
  dns?: { domain?: string };
}

interface PendingRollout {
  name: string;
}

export interface RotationStatus {
  phase?: string;
  lastInitiationTime?: string;
  lastCompletionTime?: string;
  pendingWorkersRollouts?: PendingRollout[];
}

interface ShootStatus {
  conditions?: Condition[];
  constraints?: Condition[];
  gardener?: { name?: string; version?: string };
  hibernated?: boolean;
  lastOperation?: LastOperation;
  lastErrors?: LastError[];
  observedGeneration?: number;
  seedName?: string;
  technicalID?: string;
  clusterIdentity?: string;
  advertisedAddresses?: { name: string; url: string }[];
  credentials?: {
    rotation?: {
      certificateAuthorities?: RotationStatus;
      serviceAccountKey?: RotationStatus;
      etcdEncryptionKey?: RotationStatus;
      sshKeypair?: RotationStatus;
      observability?: RotationStatus;
    };
  };
  lastMaintenance?: { description: string; triggeredTime: string; state: string; failureReason?: string };
  inPlaceUpdates?: { pendingWorkerUpdates?: { autoInPlaceUpdate?: string[]; manualInPlaceUpdate?: string[] } };
}

export interface Shoot extends KubernetesObject {
  spec: ShootSpec;
  status?: ShootStatus;
}

export interface Version {
  version: string;
  expirationDate?: string;
  classification?: string;
  lifecycle?: { classification: string; startTime?: string }[];
}

interface ImageVersion extends Version {
  architectures?: string[];
}

export interface MachineType {
  name: string;
  cpu: string;
  gpu?: string;
  memory: string;
  usable?: boolean;
  architecture?: string;
  storage?: { class: string; size?: string; type: string; minSize?: string };
}

export interface VolumeType {
  name: string;
  class: string;
  usable?: boolean;
  minSize?: string;
}

interface Zone {
  name: string;
  unavailableMachineTypes?: string[];
  unavailableVolumeTypes?: string[];
}

export interface ProfileSpec {
  type: string;
  kubernetes: { versions?: Version[] };
  machineImages?: { name: string; versions: ImageVersion[] }[];
  machineTypes?: MachineType[];
  volumeTypes?: VolumeType[];
  regions?: { name: string; zones?: Zone[] }[];
}

export interface CloudProfile extends KubernetesObject {
  spec: ProfileSpec;
}

/** A NamespacedCloudProfile has in its status what it comes to with its parent. */
export interface NamespacedCloudProfile extends KubernetesObject {
  spec: { parent?: { name: string } };
  status?: { cloudProfileSpec?: ProfileSpec };
}
