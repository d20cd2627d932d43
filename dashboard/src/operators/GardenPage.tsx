import { Tabs } from '@mantine/core';
import type { ReactNode } from 'react';
import { useSearchParams } from 'react-router';

import { resources } from '../api/paths';
import { useRights } from '../api/rights';
import { t, type MessageKey } from '../i18n';
import { Offer } from '../ui/Action';
import { Page } from '../ui/Page';
import { Backups } from './Backups';
import { Expiring } from './Expiring';
import { Glance } from './Glance';
import { Installations } from './Installations';
import { ManagedSeeds } from './ManagedSeeds';
import { Seeds } from './Seeds';

const tabs: { id: string; title: MessageKey; Panel: () => ReactNode }[] = [
  { id: 'glance', title: 'garden.glance', Panel: Glance },
  { id: 'seeds', title: 'garden.seeds', Panel: Seeds },
  { id: 'managedseeds', title: 'garden.managedSeeds', Panel: ManagedSeeds },
  { id: 'installations', title: 'garden.installations', Panel: Installations },
  { id: 'expiring', title: 'garden.expiring', Panel: Expiring },
  { id: 'backups', title: 'garden.backups', Panel: Backups },
];

/** GardenPage is the garden as its operators see it. */
export function GardenPage() {
  const [search, setSearch] = useSearchParams();
  const rights = useRights('garden', { seeds: { verb: 'list', resource: resources.seeds } });
  return (
    <Page title={t('garden.title')}>
      <Offer may={rights.seeds} who="operator">
        <Tabs
          value={search.get('tab') ?? 'glance'}
          onChange={(tab) => setSearch({ tab: tab ?? 'glance' })}
          keepMounted={false}
        >
          <Tabs.List aria-label={t('garden.title')}>
            {tabs.map(({ id, title }) => (
              <Tabs.Tab key={id} value={id}>
                {t(title)}
              </Tabs.Tab>
            ))}
          </Tabs.List>
          {tabs.map(({ id, Panel }) => (
            <Tabs.Panel key={id} value={id} pt="md">
              <Panel />
            </Tabs.Panel>
          ))}
        </Tabs>
      </Offer>
    </Page>
  );
}
