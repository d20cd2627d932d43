// Lists that several of the operators' pages show: over one connection, each is kept once.
import { useQuery } from '@tanstack/react-query';

import { request } from '../api/http';
import { resources } from '../api/paths';
import { useLiveList } from '../live';
import type { NamespacedCloudProfile, ShootRow } from '../shoots/types';
import type { GardenCertificate } from './glance';
import type { ControllerInstallation, ManagedSeed, Seed } from './types';

export const useAllShoots = () => useLiveList<ShootRow>({ cluster: 'garden', resource: resources.shoots });

export const useSeeds = () => useLiveList<Seed>({ cluster: 'garden', resource: resources.seeds, view: 'object' });

export const useInstallations = () =>
  useLiveList<ControllerInstallation>({
    cluster: 'garden',
    resource: resources.controllerinstallations,
    view: 'object',
  });

export const useOwnProfiles = () =>
  useLiveList<NamespacedCloudProfile>({
    cluster: 'garden',
    resource: resources.namespacedcloudprofiles,
    view: 'object',
  });

/** useGardenCertificates are those that the garden shows to everybody: they change once in months. */
export function useGardenCertificates(): GardenCertificate[] {
  const { data } = useQuery({
    queryKey: ['certificates'],
    queryFn: () => request<{ items: GardenCertificate[] }>('/api/certificates'),
    staleTime: 60 * 60_000,
  });
  return data?.items ?? [];
}

export const useManagedSeeds = () =>
  useLiveList<ManagedSeed>({ cluster: 'garden', resource: resources.managedseeds, view: 'object' });
