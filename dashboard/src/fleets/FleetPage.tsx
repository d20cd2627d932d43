import type { ReactNode } from 'react';
import { Anchor, Tabs } from '@mantine/core';
import { Link, useParams, useSearchParams } from 'react-router';

import { t, type MessageKey } from '../i18n';
import { Page } from '../ui/Page';
import type { Fleet } from './api';
import { Deletions } from './Deletions';
import { Members } from './Members';
import { Moves } from './Moves';
import { Objects } from './Objects';
import { Rollouts } from './Rollouts';

const tabs: { id: string; title: MessageKey; Panel: (props: { fleet: Fleet }) => ReactNode }[] = [
  { id: 'members', title: 'fleet.members', Panel: Members },
  { id: 'objects', title: 'fleet.objects', Panel: Objects },
  { id: 'rollouts', title: 'fleet.rollouts', Panel: Rollouts },
  { id: 'deletions', title: 'fleet.deletions', Panel: Deletions },
  { id: 'moves', title: 'fleet.moves', Panel: Moves },
];

/** FleetPage is a fleet: its members and what runs on them. */
export function FleetPage() {
  const { namespace = '', name = '' } = useParams();
  const [search, setSearch] = useSearchParams();
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
      <Tabs
        value={search.get('tab') ?? 'members'}
        onChange={(tab) => setSearch({ tab: tab ?? 'members' })}
        keepMounted={false}
      >
        <Tabs.List aria-label={t('fleet.title', { name })}>
          {tabs.map(({ id, title }) => (
            <Tabs.Tab key={id} value={id}>
              {t(title)}
            </Tabs.Tab>
          ))}
        </Tabs.List>
        {tabs.map(({ id, Panel }) => (
          <Tabs.Panel key={id} value={id} pt="md">
            <Panel fleet={fleet} />
          </Tabs.Panel>
        ))}
      </Tabs>
    </Page>
  );
}
