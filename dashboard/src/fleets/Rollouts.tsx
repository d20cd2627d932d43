import { NativeSelect, Stack, Text } from '@mantine/core';
import { useState } from 'react';

import { t } from '../i18n';
import { absolute } from '../i18n/time';
import { Action } from '../ui/Action';
import { Dialog } from '../ui/Dialog';
import { Empty, ListState } from '../ui/Loading';
import { Section } from '../ui/Page';
import { ToneBadge } from '../ui/Tone';
import { When } from '../ui/When';
import { askRollout, useRollouts, type Fleet } from './api';
import { objectName, rolloutActions, rolloutTone, type RolloutAction } from './placement';
import type { Rollout, RolloutWave } from './types';

/** Rollouts are changes that go from wave to wave. */
export function Rollouts({ fleet }: { fleet: Fleet }) {
  const list = useRollouts(fleet);
  return (
    <>
      <ListState list={list} />
      {list.complete && list.items.length === 0 && <Empty>{t('rollout.none')}</Empty>}
      {list.items.map((rollout) => (
        <OneRollout key={objectName(rollout.object)} fleet={fleet} rollout={rollout} />
      ))}
    </>
  );
}

function OneRollout({ fleet, rollout: item }: { fleet: Fleet; rollout: Rollout }) {
  const { object, rollout, policy } = item;
  return (
    <Section
      title={objectName(object)}
      actions={rolloutActions(item).map((action) => (
        <Action
          key={action}
          label={t(`rollout.${action}`)}
          dialog={(close) => <Ask fleet={fleet} item={item} action={action} onClose={close} />}
        />
      ))}
    >
      <p aria-live="polite">
        <ToneBadge tone={rolloutTone(rollout.phase)}>{rollout.phase}</ToneBadge> <When time={rollout.since} /> ·{' '}
        {policy}
      </p>
      {rollout.message && <p className="message">{rollout.message}</p>}
      <ol className="waves">
        {(rollout.waves ?? []).map((wave, i) => (
          <Wave
            key={wave.name}
            wave={wave}
            begun={i < (rollout.currentWave ?? 0)}
            current={i + 1 === rollout.currentWave}
          />
        ))}
      </ol>
    </Section>
  );
}

function Wave({ wave, begun, current }: { wave: RolloutWave; begun: boolean; current: boolean }) {
  const all = wave.clusters?.length ?? 0;
  return (
    <li aria-current={current ? 'step' : undefined}>
      <ToneBadge tone={!begun ? 'neutral' : wave.healthy === all ? 'good' : 'busy'}>{wave.name}</ToneBadge>{' '}
      {t('rollout.wave', { updated: wave.updated ?? 0, healthy: wave.healthy ?? 0, all })}{' '}
      <span className="dimmed">{wave.clusters?.join(', ')}</span>
    </li>
  );
}

interface AskProps {
  fleet: Fleet;
  item: Rollout;
  action: RolloutAction;
  onClose: () => void;
}

function Ask({ fleet, item: { object, rollout }, action, onClose }: AskProps) {
  const [revision, setRevision] = useState('');
  const submit = () => askRollout(fleet, object, action, revision || undefined);
  return (
    <Dialog
      title={`${t(`rollout.${action}`)}: ${objectName(object)}`}
      submit={t(`rollout.${action}`)}
      onSubmit={submit}
      onClose={onClose}
    >
      <Stack>
        <Text>{t(`rollout.${action}Help`)}</Text>
        {action === 'undo' && (
          <NativeSelect
            label={t('rollout.revision')}
            value={revision}
            onChange={(event) => setRevision(event.currentTarget.value)}
            data={[
              { value: '', label: t('rollout.before') },
              ...(rollout.revisions ?? []).map(({ revision, number, time }) => ({
                value: revision,
                label: `#${number} · ${absolute(new Date(time))}`,
              })),
            ]}
          />
        )}
      </Stack>
    </Dialog>
  );
}
