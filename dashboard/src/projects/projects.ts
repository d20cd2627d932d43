// The projects of whoever is logged in.
import { useQuery } from '@tanstack/react-query';

import { get } from '../api/objects';
import { resources } from '../api/paths';
import { request } from '../api/http';
import type { KubernetesList, KubernetesObject, Subject } from '../api/types';
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

const refresh = 30_000;

/** useProjects are those that one may open; who may not list Projects sees theirs all the same. */
export function useProjects() {
  return useQuery({
    queryKey: ['projects'],
    queryFn: () => request<KubernetesList<ProjectRow>>('/api/projects'),
    select: ({ items }) => items,
    refetchInterval: refresh,
  });
}

/** useProject is one project. Members may get it, and not watch it. */
export function useProject(name: string) {
  return useQuery({
    queryKey: ['project', name],
    queryFn: ({ signal }) => get<Project>('garden', resources.projects, { name }, signal),
    refetchInterval: refresh,
  });
}

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
