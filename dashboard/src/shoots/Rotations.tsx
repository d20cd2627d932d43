import { known, t } from '../i18n';
import { Action } from '../ui/Action';
import { Dialog } from '../ui/Dialog';
import { Section } from '../ui/Page';
import { Table, type Column } from '../ui/Table';
import { ToneBadge, type Tone } from '../ui/Tone';
import { When } from '../ui/When';
import { ask } from './actions';
import { allTogether, phases, rotationsOf, stepOf, type Rotation } from './rotation';
import type { Shoot } from './types';

interface RotationsProps {
  shoot: Shoot;
  mayChange: boolean;
}

/** Rotations are how far each credential is, and the next step that its owner may take. */
export function Rotations({ shoot, mayChange }: RotationsProps) {
  const rotations = rotationsOf(shoot);
  const together = allTogether(rotations);
  const columns: Column<Rotation>[] = [
    { id: 'what', title: t('rotation.what'), width: '1.5fr', cell: ({ title }) => t(title) },
    {
      id: 'phase',
      title: t('rotation.phase'),
      width: '2.5fr',
      cell: ({ status, id }) => <Phase phase={status.phase} inHalves={id === 'ca' || id === 'serviceaccount-key'} />,
    },
    { id: 'began', title: t('rotation.began'), cell: ({ status }) => <When time={status.lastInitiationTime} /> },
    {
      id: 'completed',
      title: t('rotation.completed'),
      cell: ({ status }) => <When time={status.lastCompletionTime} />,
    },
    {
      id: 'action',
      title: t('ui.actions'),
      cell: ({ next, title, status }) =>
        mayChange && next && <Step shoot={shoot} next={next} what={t(title)} prepared={status.phase === 'Prepared'} />,
    },
  ];
  return (
    <Section
      title={t('rotation.title')}
      actions={
        mayChange &&
        together && (
          <Step
            shoot={shoot}
            next={together}
            what={t('rotation.all')}
            prepared={together.operation.endsWith('complete')}
          />
        )
      }
    >
      <Table label={t('rotation.title')} columns={columns} rows={rotations} keyOf={({ id }) => id} />
    </Section>
  );
}

function Phase({ phase, inHalves }: { phase: string | undefined; inHalves: boolean }) {
  if (!phase) return <span className="dimmed">{t('rotation.none')}</span>;
  const waits = phase === 'Prepared' || phase === 'WaitingForWorkersRollout';
  const tone: Tone = phase === 'Completed' ? 'good' : waits ? 'warning' : 'busy';
  return (
    <>
      <ToneBadge tone={tone}>
        {phase}
        {inHalves && ` ${stepOf(phase)}/${phases.length}`}
      </ToneBadge>{' '}
      <span className="dimmed">{known('phase', phase)}</span>
    </>
  );
}

interface StepProps {
  shoot: Shoot;
  next: NonNullable<Rotation['next']>;
  what: string;
  prepared: boolean;
}

function Step({ shoot, next, what, prepared }: StepProps) {
  return (
    <Action
      label={t(next.label)}
      dialog={(close) => (
        <Dialog
          title={`${what}: ${t(next.label)}`}
          submit={t(next.label)}
          onSubmit={() => ask(shoot, next.operation)}
          onClose={close}
          danger={prepared}
        >
          <p>{t(prepared ? 'rotation.completeHelp' : 'rotation.startHelp')}</p>
          <code>{next.operation}</code>
        </Dialog>
      )}
    />
  );
}
