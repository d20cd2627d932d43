import { Stack, Text } from '@mantine/core';

import { known, t } from '../i18n';
import { date } from '../i18n/time';
import { Action } from '../ui/Action';
import { Dialog } from '../ui/Dialog';
import { Empty } from '../ui/Loading';
import { Section } from '../ui/Page';
import { Table, type Column } from '../ui/Table';
import { ToneBadge } from '../ui/Tone';
import { upgrade } from './actions';
import { expiriesOf, upgradesOf, type Upgrade } from './profile';
import type { ProfileSpec, Shoot } from './types';

interface UpgradesProps {
  shoot: Shoot;
  profile: ProfileSpec | undefined;
  mayChange: boolean;
}

/** Upgrades are the versions on offer, what they replace, and until when there is time. */
export function Upgrades({ shoot, profile, mayChange }: UpgradesProps) {
  if (!profile) return null;
  const now = new Date();
  const upgrades = upgradesOf(shoot.spec.kubernetes.version, profile.kubernetes.versions ?? [], now);
  const expiries = expiriesOf(shoot, profile, now).filter(({ soon }) => soon);
  const columns: Column<Upgrade>[] = [
    { id: 'version', title: t('shoots.version'), cell: ({ version }) => version },
    {
      id: 'kind',
      title: t('upgrades.kind'),
      cell: ({ kind }) => t(kind === 'patch' ? 'upgrades.patch' : 'upgrades.minor'),
    },
    {
      id: 'classification',
      title: t('upgrades.classification'),
      cell: ({ classification }) => known('classification', classification) ?? classification,
    },
    { id: 'expires', title: t('shoots.expiry'), cell: ({ expires }) => (expires ? date(expires) : '–') },
    {
      id: 'action',
      title: t('ui.actions'),
      cell: (offer) => {
        if (!offer.offered) return <span className="dimmed">{t('upgrades.later')}</span>;
        return (
          mayChange && (
            <Action
              label={t('upgrades.to', { version: offer.version })}
              dialog={(close) => <Confirm shoot={shoot} offer={offer} onClose={close} />}
            />
          )
        );
      },
    },
  ];
  return (
    <Section title={t('upgrades.title')}>
      {expiries.map(({ what, version, expires, expired }) => (
        <p key={`${what} ${version}`}>
          <ToneBadge tone={expired ? 'bad' : 'warning'}>
            {t(expired ? 'upgrades.expired' : 'upgrades.expires', { what, version, date: date(expires) })}
          </ToneBadge>
        </p>
      ))}
      {upgrades.length === 0 ? (
        <Empty>{t('upgrades.none')}</Empty>
      ) : (
        <Table label={t('upgrades.title')} columns={columns} rows={upgrades} keyOf={({ version }) => version} />
      )}
    </Section>
  );
}

function Confirm({ shoot, offer, onClose }: { shoot: Shoot; offer: Upgrade; onClose: () => void }) {
  const pools = (shoot.spec.provider.workers ?? []).filter(({ kubernetes }) => !kubernetes?.version);
  const rolled = pools
    .filter(({ updateStrategy }) => !updateStrategy || updateStrategy === 'AutoRollingUpdate')
    .map(({ name }) => name);
  const inPlace = pools.map(({ name }) => name).filter((name) => !rolled.includes(name));
  return (
    <Dialog
      title={t('upgrades.to', { version: offer.version })}
      submit={t('upgrades.start')}
      onSubmit={() => upgrade(shoot, offer.version)}
      onClose={onClose}
    >
      <Stack gap="xs">
        <Text>{t('upgrades.from', { from: shoot.spec.kubernetes.version, to: offer.version })}</Text>
        {rolled.length > 0 && (
          <Text>
            {t(offer.kind === 'minor' ? 'upgrades.replaces' : 'upgrades.restarts', { pools: rolled.join(', ') })}
          </Text>
        )}
        {inPlace.length > 0 && <Text>{t('upgrades.inPlace', { pools: inPlace.join(', ') })}</Text>}
        <Text>{t('upgrades.noWayBack')}</Text>
        {offer.classification !== 'supported' && (
          <Text fw="bold">
            {t('upgrades.preview', {
              classification: known('classification', offer.classification) ?? offer.classification,
            })}
          </Text>
        )}
      </Stack>
    </Dialog>
  );
}
