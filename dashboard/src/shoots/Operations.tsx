import { Group, Text } from '@mantine/core';
import { useNavigate } from 'react-router';

import { t, type MessageKey } from '../i18n';
import { Action, Offer } from '../ui/Action';
import { Dialog, NamedDialog } from '../ui/Dialog';
import { Section } from '../ui/Page';
import { ask, deleteShoot, hibernate } from './actions';
import { isWorking } from './operation';
import { isFleet } from './status';
import type { Shoot } from './types';

interface OperationsProps {
  shoot: Shoot;
  rights: { change: boolean; delete: boolean };
}

/** Operations are what can be done to the shoot as a whole. */
export function Operations({ shoot, rights }: OperationsProps) {
  const sleeps = shoot.spec.hibernation?.enabled ?? false;
  const failed = shoot.status?.lastOperation?.state === 'Failed';
  const deleting = shoot.metadata.deletionTimestamp !== undefined;
  return (
    <Section title={t('actions.title')}>
      <Offer may={rights.change} who="projectAdmin">
        <Group gap="xs">
          <Confirmed
            label={sleeps ? 'actions.wake' : 'actions.hibernate'}
            help={sleeps ? 'actions.wakeHelp' : 'actions.hibernateHelp'}
            act={() => hibernate(shoot, !sleeps)}
            disabled={deleting}
          />
          <Confirmed
            label="actions.reconcile"
            help="actions.reconcileHelp"
            act={() => ask(shoot, 'reconcile')}
            disabled={isWorking(shoot.status?.lastOperation)}
          />
          <Confirmed
            label="actions.maintain"
            help="actions.maintainHelp"
            act={() => ask(shoot, 'maintain')}
            disabled={deleting || sleeps}
          />
          {failed && <Confirmed label="actions.retry" help="actions.retryHelp" act={() => ask(shoot, 'retry')} />}
          {rights.delete && !deleting && (
            <Action
              label={t('actions.delete')}
              color="red"
              dialog={(close) => <DeleteShoot shoot={shoot} onClose={close} />}
            />
          )}
        </Group>
      </Offer>
    </Section>
  );
}

interface ConfirmedProps {
  label: MessageKey;
  help: MessageKey;
  act: () => Promise<unknown>;
  disabled?: boolean;
}

/** Confirmed tells what an action does before it is done. */
export function Confirmed({ label, help, act, disabled }: ConfirmedProps) {
  return (
    <Action
      label={t(label)}
      disabled={disabled}
      dialog={(close) => (
        <Dialog title={t(label)} submit={t(label)} onSubmit={act} onClose={close}>
          <Text>{t(help)}</Text>
        </Dialog>
      )}
    />
  );
}

function DeleteShoot({ shoot, onClose }: { shoot: Shoot; onClose: () => void }) {
  const navigate = useNavigate();
  const { name } = shoot.metadata;
  const pools = shoot.spec.provider.workers ?? [];
  const submit = async () => {
    await deleteShoot(shoot);
    await navigate('.', { replace: true });
  };
  return (
    <NamedDialog
      name={name}
      title={t('actions.deleteOf', { name })}
      submit={t('actions.delete')}
      onSubmit={submit}
      onClose={onClose}
    >
      <Text>{t('actions.deleteLoses')}</Text>
      <ul>
        <li>{t('actions.losesAPI')}</li>
        {pools.length > 0 && <li>{t('actions.losesMachines', { pools: pools.map(({ name }) => name).join(', ') })}</li>}
        {isFleet(shoot) && <li>{t('actions.losesFleet')}</li>}
        <li>{t('actions.losesKubeconfigs')}</li>
      </ul>
    </NamedDialog>
  );
}
