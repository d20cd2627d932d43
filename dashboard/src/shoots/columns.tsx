import { Anchor } from '@mantine/core';
import { Link } from 'react-router';

import { t } from '../i18n';
import { date } from '../i18n/time';
import type { Column } from '../ui/Table';
import { ToneBadge } from '../ui/Tone';
import { versionExpiry } from './profile';
import { findProfile, type OfferedProfile } from './profiles';
import { issuesOf, nodesOf, summaryOf } from './status';
import type { ShootRow } from './types';

const worst = { bad: 0, warning: 1, busy: 2, neutral: 3, good: 4 };

/** ShootStatus is a shoot's state with how far it is. */
export function ShootStatus({ row }: { row: ShootRow }) {
  const { tone, key, progress } = summaryOf(row);
  return (
    <ToneBadge tone={tone} title={row.operation?.description}>
      {t(key)}
      {progress !== undefined && tone === 'busy' && ` ${progress}%`}
    </ToneBadge>
  );
}

function Expiry({ row, profiles }: { row: ShootRow; profiles: OfferedProfile[] | undefined }) {
  const expiry = versionExpiry(findProfile(profiles, 'CloudProfile', row.profile)?.spec, row.version, new Date());
  if (!expiry) return '–';
  if (!expiry.soon) return date(expiry.expires);
  return <ToneBadge tone={expiry.expired ? 'bad' : 'warning'}>{date(expiry.expires)}</ToneBadge>;
}

/** shootColumns are those of lists of shoots; the namespace only where they are of all projects. */
export function shootColumns(profiles: OfferedProfile[] | undefined, ofAll: boolean): Column<ShootRow>[] {
  const project: Column<ShootRow> = {
    id: 'project',
    title: t('shoots.project'),
    sort: ({ project, namespace }) => project ?? namespace,
    cell: ({ project, namespace }) => project ?? namespace,
  };
  return [
    {
      id: 'name',
      title: t('shoots.name'),
      width: '1.6fr',
      sort: ({ name }) => name,
      cell: ({ namespace, name }) => (
        <Anchor component={Link} to={`/shoots/${namespace}/${name}`}>
          {name}
        </Anchor>
      ),
    },
    ...(ofAll ? [project] : []),
    {
      id: 'status',
      title: t('shoots.status'),
      width: '1.4fr',
      sort: (row) => worst[summaryOf(row).tone],
      cell: (row) => <ShootStatus row={row} />,
    },
    {
      id: 'version',
      title: t('shoots.version'),
      width: '1.2fr',
      sort: ({ version }) => version ?? '',
      cell: ({ version }) => version,
    },
    { id: 'seed', title: t('shoots.seed'), sort: ({ seed }) => seed ?? '', cell: ({ seed }) => seed ?? '–' },
    { id: 'purpose', title: t('shoots.purpose'), sort: ({ purpose }) => purpose ?? '', cell: ({ purpose }) => purpose },
    {
      id: 'nodes',
      title: t('shoots.nodes'),
      width: '0.7fr',
      cell: ({ workers, workerless }) => (workerless ? '–' : nodesOf(workers)),
    },
    { id: 'expiry', title: t('shoots.expiry'), cell: (row) => <Expiry row={row} profiles={profiles} /> },
    {
      id: 'issues',
      title: t('shoots.issues'),
      width: '2fr',
      sort: (row) => -issuesOf(row).length,
      cell: (row) => <Issues row={row} />,
    },
  ];
}

function Issues({ row }: { row: ShootRow }) {
  const issues = issuesOf(row);
  if (issues.length === 0 && !row.error) return null;
  return (
    <span title={row.error} className="clip">
      {issues.join(', ') || row.error}
    </span>
  );
}
