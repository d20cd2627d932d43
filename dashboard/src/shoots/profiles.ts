// Cloud profiles are read once in a while: they change rarely, and everybody reads all of them.
import { useQuery } from '@tanstack/react-query';

import { list } from '../api/objects';
import { resources } from '../api/paths';
import type { CloudProfile, NamespacedCloudProfile, ProfileSpec } from './types';

export interface OfferedProfile {
  kind: 'CloudProfile' | 'NamespacedCloudProfile';
  name: string;
  spec: ProfileSpec;
}

/** useProfiles are those of the garden, and those of a project's own. */
export function useProfiles(namespace?: string) {
  return useQuery({
    queryKey: ['profiles', namespace ?? ''],
    staleTime: 5 * 60_000,
    queryFn: async (): Promise<OfferedProfile[]> => {
      const [all, own] = await Promise.all([
        list<CloudProfile>('garden', resources.cloudprofiles),
        namespace
          ? list<NamespacedCloudProfile>('garden', resources.namespacedcloudprofiles, namespace)
          : { items: [] },
      ]);
      return [
        ...all.items.map(({ metadata, spec }): OfferedProfile => ({ kind: 'CloudProfile', name: metadata.name, spec })),
        ...own.items.flatMap(({ metadata, status }): OfferedProfile[] =>
          status?.cloudProfileSpec
            ? [{ kind: 'NamespacedCloudProfile', name: metadata.name, spec: status.cloudProfileSpec }]
            : [],
        ),
      ];
    },
  });
}

export const findProfile = (profiles: OfferedProfile[] | undefined, kind: string, name: string | undefined) =>
  profiles?.find((profile) => profile.kind === kind && profile.name === name);
