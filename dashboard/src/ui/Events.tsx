import { resources, type Cluster } from '../api/paths';
import { t } from '../i18n';
import { useLiveList } from '../live';
import { Offer } from './Action';
import { ListTable } from './ListTable';
import { Section } from './Page';
import type { Column } from './Table';
import { ToneBadge } from './Tone';
import { When } from './When';

interface EventRow {
  uid: string;
  type?: string;
  reason?: string;
  message?: string;
  count?: number;
  first?: string;
  last?: string;
  source?: string;
}

interface EventsProps {
  cluster: Cluster;
  namespace: string;
  kind: string;
  name: string;
  may: boolean;
}

/** Events are what controllers tell about an object, the latest first. */
export function Events({ cluster, namespace, kind, name, may }: EventsProps) {
  const fieldSelector = `involvedObject.kind=${kind},involvedObject.name=${name}`;
  const list = useLiveList<EventRow>(may ? { cluster, resource: resources.events, namespace, fieldSelector } : null);
  const rows = [...list.items].sort((a, b) => (b.last ?? '').localeCompare(a.last ?? ''));
  const columns: Column<EventRow>[] = [
    { id: 'last', title: t('events.last'), cell: ({ last }) => <When time={last} /> },
    {
      id: 'reason',
      title: t('events.reason'),
      width: '1.2fr',
      cell: ({ type, reason }) => <ToneBadge tone={type === 'Warning' ? 'warning' : 'neutral'}>{reason}</ToneBadge>,
    },
    { id: 'message', title: t('events.message'), width: '4fr', cell: ({ message }) => message },
    { id: 'source', title: t('events.source'), cell: ({ source }) => source },
    { id: 'count', title: t('events.count'), width: '0.5fr', cell: ({ count }) => count ?? 1 },
  ];
  return (
    <Section title={t('events.title')}>
      <Offer may={may} who="projectAdmin">
        <ListTable label={t('events.title')} list={list} columns={columns} none={t('events.none')} rows={rows} />
      </Offer>
    </Section>
  );
}
