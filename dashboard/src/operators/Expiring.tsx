import { t } from '../i18n';
import { date } from '../i18n/time';
import { noticeDays } from '../shoots/profile';
import { useProfiles } from '../shoots/profiles';
import { Empty } from '../ui/Loading';
import { Section } from '../ui/Page';
import { Table, type Column } from '../ui/Table';
import { ToneBadge } from '../ui/Tone';
import { useNow } from '../ui/When';
import {
  expiringCertificates,
  expiringOfGarden,
  expiringOwnVersions,
  expiringVersions,
  ownProfilesOf,
  soonestFirst,
  type Expiring as Item,
} from './glance';
import { useAllShoots, useGardenCertificates, useOwnProfiles, useSeeds } from './lists';

/** Expiring are versions and certificates of which the time is nearly over. */
export function Expiring() {
  const now = useNow();
  const { items: shoots } = useAllShoots();
  const { items: seeds } = useSeeds();
  const { data: profiles = [] } = useProfiles();
  const { items: own } = useOwnProfiles();
  const versions = [
    ...expiringVersions(profiles, shoots, noticeDays, now),
    ...expiringOwnVersions(ownProfilesOf(own, profiles), shoots, noticeDays, now),
  ];
  const certificates = [
    ...expiringOfGarden(useGardenCertificates(), noticeDays, now),
    ...expiringCertificates(seeds, shoots, noticeDays, now),
  ];
  return (
    <>
      <Items title={t('expiring.versions')} items={versions} />
      <Items title={t('expiring.certificates')} items={certificates} />
    </>
  );
}

function Items({ title, items }: { title: string; items: Item[] }) {
  const columns: Column<Item>[] = [
    { id: 'what', title: t('expiring.what'), cell: ({ what }) => what },
    { id: 'name', title: t('expiring.of'), cell: ({ name }) => name },
    {
      id: 'expires',
      title: t('shoots.expiry'),
      cell: ({ expires, expired }) => (
        <ToneBadge tone={expired ? 'bad' : 'warning'}>{expires ? date(expires) : t('expiring.soon')}</ToneBadge>
      ),
    },
    { id: 'shoots', title: t('shoots.title'), cell: ({ shoots }) => shoots },
  ];
  return (
    <Section title={title}>
      {items.length === 0 ? (
        <Empty>{t('expiring.none', { days: noticeDays })}</Empty>
      ) : (
        <Table
          label={title}
          columns={columns}
          rows={soonestFirst(items)}
          keyOf={({ what, name }) => `${what} ${name}`}
        />
      )}
    </Section>
  );
}
