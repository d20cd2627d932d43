import type { ReactNode } from 'react';

import { resources } from '../api/paths';
import { t } from '../i18n';
import { useLiveObject } from '../live';
import type { ShootRow } from '../shoots/types';
import { Missing, ObjectState } from '../ui/Missing';
import type { Fleet } from './api';

/** InFleet shows what is in a fleet; else it says that there is none, or that it may not be read, and what to do. */
export function InFleet({ fleet, children }: { fleet: Fleet; children: ReactNode }) {
  const { namespace, name } = fleet;
  const shoot = useLiveObject<ShootRow>({
    cluster: 'garden',
    resource: resources.shoots,
    namespace,
    name,
    view: 'row',
  });
  if (shoot.object?.fleet) return children;
  if (shoot.object) {
    const way = { title: name, to: `/shoots/${namespace}/${name}` };
    return <Missing what={t('fleet.isNone', { name })} help={t('fleet.isNoneDo')} way={way} />;
  }
  return <ObjectState of={shoot} gone={t('fleet.gone', { name })} way={{ title: t('nav.fleets'), to: '/fleets' }} />;
}
