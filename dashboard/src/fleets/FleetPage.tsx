import { Anchor } from '@mantine/core';
import { Link, useParams } from 'react-router';

import { t } from '../i18n';
import { Page } from '../ui/Page';
import { PageTabs } from '../ui/PageTabs';
import { Deletions } from './Deletions';
import { InFleet } from './InFleet';
import { Members } from './Members';
import { MovesTable } from './Moves';
import { Objects } from './Objects';
import { Rollouts } from './Rollouts';

/** FleetPage is a fleet: its members and what runs on them. */
export function FleetPage() {
  const { namespace = '', name = '' } = useParams();
  const fleet = { namespace, name };
  return (
    <Page
      title={t('fleet.title', { name })}
      path={[
        { title: t('nav.fleets'), to: '/fleets' },
        { title: name, to: `/shoots/${namespace}/${name}` },
      ]}
      actions={
        <Anchor component={Link} to={`/fleets/${namespace}/${name}/plan`}>
          {t('plan.title')}
        </Anchor>
      }
    >
      <InFleet fleet={fleet}>
        <PageTabs
          label={t('fleet.title', { name })}
          tabs={[
            { id: 'members', title: t('fleet.members'), panel: <Members fleet={fleet} /> },
            { id: 'objects', title: t('fleet.objects'), panel: <Objects fleet={fleet} /> },
            { id: 'rollouts', title: t('fleet.rollouts'), panel: <Rollouts fleet={fleet} /> },
            { id: 'deletions', title: t('fleet.deletions'), panel: <Deletions fleet={fleet} /> },
            { id: 'moves', title: t('fleet.moves'), panel: <MovesTable fleet={fleet} /> },
          ]}
        />
      </InFleet>
    </Page>
  );
}
