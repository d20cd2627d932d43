// The projects of whoever is logged in.
import { ApiError } from '../api/http';
import { resources } from '../api/paths';
import type { KubernetesObject, Subject } from '../api/types';
import { useLiveList, useLiveObject } from '../live';
import type { Tone } from '../ui/Tone';

export interface ProjectRow {
  uid: string;
  name: string;
  created?: string;
  deleting?: boolean;
  projectNamespace?: string;
  phase?: string;
  owner?: string;
  description?: string;
  purpose?: string;
  members?: number;
  stale?: string;
}

export interface Member extends Subject {
  role: string;
  roles?: string[];
}

export interface Project extends KubernetesObject {
  spec: {
    description?: string;
    purpose?: string;
    owner?: Subject;
    createdBy?: Subject;
    members?: Member[];
    namespace?: string;
  };
  status?: {
    phase?: string;
    staleSinceTimestamp?: string;
    staleAutoDeleteTimestamp?: string;
    lastActivityTimestamp?: string;
  };
}

/** useProjects are those that one may open: the garden tells everybody of theirs. Undefined until all are known. */
export function useProjects(): { data: ProjectRow[] | undefined; error: ApiError | null } {
  const { items, complete, error } = useLiveList<ProjectRow>({ cluster: 'garden', resource: resources.projects });
  return { data: complete ? items : undefined, error: error ? new ApiError(error) : null };
}

/** useProject is one project. */
export const useProject = (name: string) =>
  useLiveObject<Project>({ cluster: 'garden', resource: resources.projects, name });

/** projectOf is the project of a namespace. */
export function useProjectOf(namespace: string): ProjectRow | undefined {
  const { data } = useProjects();
  return data?.find(({ projectNamespace }) => projectNamespace === namespace);
}

const tones: Record<string, Tone> = { Ready: 'good', Pending: 'busy', Terminating: 'busy', Failed: 'bad' };

export const phaseTone = (phase: string | undefined): Tone => tones[phase ?? ''] ?? 'neutral';

/** projectNameFault tells what is wrong with the name of a new project. */
export function projectNameFault(name: string): 'length' | 'form' | undefined {
  if (name.length > 10 || name === '') return 'length';
  return /^[a-z]([-a-z0-9]*[a-z0-9])?$/.test(name) && !name.includes('--') ? undefined : 'form';
}
