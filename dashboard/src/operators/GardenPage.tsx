import { resources } from '../api/paths';
import { useRights } from '../api/rights';
import { t } from '../i18n';
import { Offer } from '../ui/Action';
import { Page } from '../ui/Page';
import { PageTabs } from '../ui/PageTabs';
import { Backups } from './Backups';
import { Expiring } from './Expiring';
import { Glance } from './Glance';
import { Installations } from './Installations';
import { ManagedSeeds } from './ManagedSeeds';
import { Seeds } from './Seeds';

/** GardenPage is the garden as its operators see it. */
export function GardenPage() {
  const rights = useRights('garden', { seeds: { verb: 'list', resource: resources.controllerinstallations } });
  return (
    <Page title={t('garden.title')}>
      <Offer may={rights.seeds} who="operator">
        <PageTabs
          label={t('garden.title')}
          tabs={[
            { id: 'glance', title: t('garden.glance'), panel: <Glance /> },
            { id: 'seeds', title: t('garden.seeds'), panel: <Seeds /> },
            { id: 'managedseeds', title: t('garden.managedSeeds'), panel: <ManagedSeeds /> },
            { id: 'installations', title: t('garden.installations'), panel: <Installations /> },
            { id: 'expiring', title: t('garden.expiring'), panel: <Expiring /> },
            { id: 'backups', title: t('garden.backups'), panel: <Backups /> },
          ]}
        />
      </Offer>
    </Page>
  );
}
