import { Button, Checkbox, Group, Stack, TextInput } from '@mantine/core';
import { useMutation } from '@tanstack/react-query';
import { lazy, Suspense, useState } from 'react';
import { useParams } from 'react-router';

import { t } from '../i18n';
import { Failure } from '../ui/Failure';
import { Empty, Loading } from '../ui/Loading';
import { Facts, Page, Section } from '../ui/Page';
import { Table, type Column } from '../ui/Table';
import { ToneBadge } from '../ui/Tone';
import { plan, type Fleet } from './api';
import { InFleet } from './InFleet';
import { effectTone, objectName, shown } from './placement';
import { documentFaults } from './save';
import { SavePlan, type Asked } from './SavePlan';
import type { Plan, PlannedObject } from './types';

const CodeEditor = lazy(() => import('../editor/CodeEditor'));
const noCompletions = () => [];

/** PlanPage tells what policies and objects would do to the fleet, before anybody saves them. */
export function PlanPage() {
  const { namespace = '', name = '' } = useParams();
  const fleet: Fleet = { namespace, name };
  const [documents, setDocuments] = useState('');
  const [into, setInto] = useState('default');
  const [isDeletion, setDeletion] = useState(false);
  const { data, error, mutate, isPending, variables } = useMutation({
    mutationFn: (asked: Asked) => plan(fleet, asked.documents, asked.into, asked.isDeletion),
  });
  const present: Asked = { documents, into, isDeletion };
  // What was typed since is not what was planned.
  const isOfPresent = JSON.stringify(variables) === JSON.stringify(present);
  return (
    <Page
      title={t('plan.title')}
      path={[
        { title: t('nav.fleets'), to: '/fleets' },
        { title: name, to: `/fleets/${namespace}/${name}` },
      ]}
    >
      <InFleet fleet={fleet}>
        <Stack>
          <p>{t('plan.help')}</p>
          <Suspense fallback={<Loading />}>
            <CodeEditor
              label={t('plan.documents')}
              text={documents}
              onChange={setDocuments}
              faults={documentFaults(documents)}
              complete={noCompletions}
            />
          </Suspense>
          <Group align="end">
            <TextInput
              label={t('plan.namespace')}
              value={into}
              onChange={(event) => setInto(event.currentTarget.value)}
            />
            <Checkbox
              label={t('plan.delete')}
              checked={isDeletion}
              onChange={(event) => setDeletion(event.currentTarget.checked)}
            />
            <Button onClick={() => mutate(present)} loading={isPending} disabled={documents.trim() === ''}>
              {t('plan.submit')}
            </Button>
          </Group>
          <Failure error={error} />
          <div aria-live="polite">{data && <Planned plan={data} />}</div>
          {data && isOfPresent && <SavePlan fleet={fleet} asked={present} />}
        </Stack>
      </InFleet>
    </Page>
  );
}

function Planned({ plan: { objects, warnings = [], held = [], passedOver = [], summary } }: { plan: Plan }) {
  return (
    <>
      <Section title={t('plan.summary')}>
        <Facts
          facts={[
            [t('plan.examined'), summary.examined],
            [t('plan.changed'), summary.changed],
            [t('plan.added'), summary.added],
            [t('plan.removed'), summary.removed],
            [t('plan.scaled'), summary.scaled],
            [t('plan.kept'), summary.kept],
            [t('plan.losePolicy'), summary.losePolicy],
            [t('plan.unplaced'), summary.unplaced],
            [t('plan.replicas'), `+${summary.replicasAdded} −${summary.replicasRemoved}`],
          ]}
        />
        {warnings.map(({ document, message }) => (
          <p key={`${document} ${message}`}>
            <ToneBadge tone="warning">{document}</ToneBadge> {message}
          </p>
        ))}
        {held.map(({ cluster = '', deletions, objects, allowance }) => (
          <p key={cluster}>
            <ToneBadge tone="warning">{cluster || t('plan.allClusters')}</ToneBadge>{' '}
            {t('plan.held', { deletions, objects, allowance })}
          </p>
        ))}
        {passedOver.map(({ policy, reason, objects }) => (
          <p key={policy}>
            <ToneBadge tone="neutral">{policy}</ToneBadge> {reason} ({objects.map(objectName).join(', ')})
          </p>
        ))}
      </Section>
      {objects.length === 0 && <Empty>{t('plan.nothing')}</Empty>}
      {objects.map((object) => (
        <PlannedSection key={objectName(object)} object={object} />
      ))}
    </>
  );
}

type PlannedCluster = NonNullable<PlannedObject['clusters']>[number];
type PlannedField = NonNullable<PlannedObject['fields']>[number];

function PlannedSection({ object }: { object: PlannedObject }) {
  const { clusters = [], fields = [], notes = [], policyNow, policyThen } = object;
  const columns: Column<PlannedCluster>[] = [
    { id: 'name', title: t('member.name'), cell: ({ name }) => name },
    {
      id: 'effect',
      title: t('plan.effect'),
      cell: ({ effect }) => <ToneBadge tone={effectTone(effect)}>{t(`effect.${effect}`)}</ToneBadge>,
    },
    {
      id: 'replicas',
      title: t('object.replicas'),
      cell: ({ replicasNow, replicasThen }) => `${replicasNow ?? '–'} → ${replicasThen ?? '–'}`,
    },
  ];
  const fieldColumns: Column<PlannedField>[] = [
    { id: 'cluster', title: t('member.name'), cell: ({ cluster }) => cluster },
    { id: 'path', title: t('overrides.path'), width: '2fr', cell: ({ path }) => <code>{path}</code> },
    { id: 'now', title: t('overrides.before'), cell: ({ now }) => shown(now) ?? t('overrides.absent') },
    { id: 'then', title: t('overrides.after'), cell: ({ then }) => shown(then) ?? t('overrides.absent') },
    { id: 'setBy', title: t('overrides.rule'), cell: ({ setBy }) => setBy },
  ];
  return (
    <Section title={objectName(object)}>
      {policyNow !== policyThen && <p>{t('plan.policy', { now: policyNow ?? '–', then: policyThen ?? '–' })}</p>}
      {clusters.length > 0 && (
        <Table label={objectName(object)} columns={columns} rows={clusters} keyOf={({ name }) => name} />
      )}
      {fields.length > 0 && (
        <Table
          label={t('overrides.title')}
          columns={fieldColumns}
          rows={fields}
          keyOf={({ cluster, path }) => `${cluster} ${path}`}
        />
      )}
      {notes.map((note) => (
        <p key={note} className="message">
          {note}
        </p>
      ))}
    </Section>
  );
}
