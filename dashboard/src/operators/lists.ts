// Lists that several of the operators' pages show: over one connection, each is kept once.
import { resources } from '../api/paths';
import { useLiveList } from '../live';
import type { ShootRow } from '../shoots/types';
import type { ControllerInstallation, ManagedSeed, Seed } from './types';

export const useAllShoots = () => useLiveList<ShootRow>({ cluster: 'garden', resource: resources.shoots });

export const useSeeds = () => useLiveList<Seed>({ cluster: 'garden', resource: resources.seeds, view: 'object' });

export const useInstallations = () =>
  useLiveList<ControllerInstallation>({
    cluster: 'garden',
    resource: resources.controllerinstallations,
    view: 'object',
  });

export const useManagedSeeds = () =>
  useLiveList<ManagedSeed>({ cluster: 'garden', resource: resources.managedseeds, view: 'object' });
