// How far the rotation of each credential is, and what comes next (docs/credentials-rotation.md).
import type { MessageKey } from '../i18n';
import type { RotationStatus, Shoot } from './types';

export interface Rotation {
  id: 'ca' | 'serviceaccount-key' | 'etcd-encryption-key' | 'ssh-keypair';
  title: MessageKey;
  status: RotationStatus;
  /** What can be asked for now; absent while it is at work. */
  next?: { operation: string; label: MessageKey };
}

/** phases of a rotation in two halves, in their order. */
export const phases = ['Preparing', 'WaitingForWorkersRollout', 'Prepared', 'Completing', 'Completed'];

/** stepOf is how many phases are begun; 0 if there was no rotation yet. */
export function stepOf(phase: string | undefined): number {
  return phases.indexOf(phase === 'PreparingWithoutWorkersRollout' ? 'Preparing' : (phase ?? '')) + 1;
}

/** rolloutOperation has the machines of pools replaced that a start without rollout spared. */
const rolloutOperation = (status: RotationStatus) =>
  `rotate-rollout-workers=${(status.pendingWorkersRollouts ?? []).map(({ name }) => name).join(',') || '*'}`;

function nextOf(id: Rotation['id'], status: RotationStatus): Rotation['next'] {
  const inHalves = id === 'ca' || id === 'serviceaccount-key';
  switch (status.phase ?? 'Completed') {
    case 'Completed':
      return { operation: inHalves ? `rotate-${id}-start` : `rotate-${id}`, label: 'rotation.start' };
    case 'Prepared':
      return inHalves ? { operation: `rotate-${id}-complete`, label: 'rotation.complete' } : undefined;
    case 'WaitingForWorkersRollout':
      return { operation: rolloutOperation(status), label: 'rotation.rollout' };
    default:
      return undefined;
  }
}

/** rotationsOf lists what can be rotated alone. Shoots without workers have no SSH key. */
export function rotationsOf(shoot: Shoot): Rotation[] {
  const rotation = shoot.status?.credentials?.rotation ?? {};
  const make = (id: Rotation['id'], title: MessageKey, status: RotationStatus = {}): Rotation => ({
    id,
    title,
    status,
    next: nextOf(id, status),
  });
  const hasWorkers = (shoot.spec.provider.workers?.length ?? 0) > 0;
  return [
    make('ca', 'rotation.ca', rotation.certificateAuthorities),
    make('serviceaccount-key', 'rotation.serviceaccountKey', rotation.serviceAccountKey),
    make('etcd-encryption-key', 'rotation.etcdKey', rotation.etcdEncryptionKey),
    ...(hasWorkers ? [make('ssh-keypair', 'rotation.sshKeypair', rotation.sshKeypair)] : []),
  ];
}

/** allTogether is the operation for all credentials that fits what they are at; undefined while one is at work. */
export function allTogether(rotations: Rotation[]): { operation: string; label: MessageKey } | undefined {
  const halves = rotations
    .filter(({ id }) => id === 'ca' || id === 'serviceaccount-key')
    .map(({ status }) => status.phase);
  if (halves.every((phase) => phase === undefined || phase === 'Completed')) {
    return { operation: 'rotate-credentials-start', label: 'rotation.startAll' };
  }
  if (halves.every((phase) => phase === 'Prepared')) {
    return { operation: 'rotate-credentials-complete', label: 'rotation.completeAll' };
  }
  return undefined;
}
