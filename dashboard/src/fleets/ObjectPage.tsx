import { lazy, Suspense } from 'react';
import { useParams, useSearchParams } from 'react-router';

import { resources } from '../api/paths';
import { t } from '../i18n';
import { useLiveList } from '../live';
import { Failure } from '../ui/Failure';
import { Empty, Loading } from '../ui/Loading';
import { Facts, Page, Section } from '../ui/Page';
import { Table, type Column } from '../ui/Table';
import { ToneBadge } from '../ui/Tone';
import { clusterOf, useExplanation, useOverrides, type Fleet } from './api';
import { InFleet } from './InFleet';
import { MovesTable } from './Moves';
import { mapOf, objectIn, objectName, shown } from './placement';
import type { BindingRow, ExplainedCluster, Explanation, ObjectKey, OverrideField } from './types';

const PlacementMap = lazy(() => import('./PlacementMap'));

/** ObjectPage tells of one object why it is where it is, and what it is like there. */
export function ObjectPage() {
  const { namespace = '', name = '' } = useParams();
  const [search] = useSearchParams();
  const object = objectIn(search);
  const fleet = { namespace, name };
  return (
    <Page
      title={object ? objectName(object) : t('app.notFound')}
      path={[
        { title: t('nav.fleets'), to: '/fleets' },
        { title: name, to: `/fleets/${namespace}/${name}?tab=objects` },
      ]}
    >
      <InFleet fleet={fleet}>
        {object ? <Sections fleet={fleet} object={object} /> : <Empty>{t('object.none')}</Empty>}
      </InFleet>
    </Page>
  );
}

function Sections({ fleet, object }: { fleet: Fleet; object: ObjectKey }) {
  const row = useBinding(fleet, object);
  const explanation = useExplanation(fleet, object, row);
  return (
    <>
      <Section title={t('object.map')}>
        <Suspense fallback={<Loading />}>
          <PlacementMap {...mapOf(objectName(object), explanation.data?.policy ?? row?.policy, row?.clusters ?? [])} />
        </Suspense>
      </Section>
      <Section title={t('explain.title')}>
        <Failure error={explanation.error} />
        {explanation.isPending && <Loading />}
        {explanation.data && <Explained explanation={explanation.data} />}
      </Section>
      <OverridesSection fleet={fleet} object={object} seen={row} />
      <Section title={t('fleet.moves')}>
        <MovesTable fleet={fleet} object={object} />
      </Section>
    </>
  );
}

/** The binding changes when the object moves: then the explanation is read anew. */
function useBinding(fleet: Fleet, { kind, namespace, name }: ObjectKey): BindingRow | undefined {
  const { items } = useLiveList<BindingRow>({
    cluster: clusterOf(fleet),
    resource: namespace ? resources.resourcebindings : resources.clusterresourcebindings,
    namespace,
  });
  return items.find(({ object }) => object?.kind === kind && object.name === name);
}

function Explained({ explanation }: { explanation: Explanation }) {
  const columns: Column<ExplainedCluster>[] = [
    { id: 'name', title: t('member.name'), sort: ({ name }) => name, cell: ({ name }) => name },
    {
      id: 'chosen',
      title: t('explain.decision'),
      cell: ({ chosen, fits }) => (
        <ToneBadge tone={chosen ? 'good' : fits ? 'neutral' : 'bad'}>
          {t(chosen ? 'explain.chosen' : fits ? 'explain.fits' : 'explain.refused')}
        </ToneBadge>
      ),
    },
    { id: 'replicas', title: t('object.replicas'), width: '0.7fr', cell: ({ replicas }) => replicas },
    { id: 'score', title: t('explain.score'), width: '0.7fr', cell: ({ score }) => score },
    { id: 'available', title: t('explain.available'), width: '0.8fr', cell: ({ available }) => available },
    {
      id: 'reason',
      title: t('explain.reason'),
      width: '3fr',
      cell: ({ reason, message }) => [reason, message].filter(Boolean).join(': '),
    },
  ];
  const { scheduled, skippedAffinities = [], groups = [], clusters = [], omitted } = explanation;
  return (
    <>
      <Facts
        facts={[
          [t('object.policy'), explanation.policy],
          [t('explain.requiredBy'), explanation.requiredBy?.join(', ')],
          [
            t('explain.scheduled'),
            [scheduled?.status, scheduled?.reason, scheduled?.message].filter(Boolean).join(' · '),
          ],
          [t('explain.strategy'), explanation.strategy],
          [t('explain.affinity'), explanation.affinity],
          [t('explain.skipped'), skippedAffinities.map(({ name, message }) => `${name}: ${message ?? ''}`).join('; ')],
          [
            t('explain.groups'),
            groups.map(({ name, score, chosen }) => `${name} (${score ?? 0}${chosen ? ' ✓' : ''})`).join(', '),
          ],
          [
            t('explain.growth'),
            explanation.growth && `${explanation.growth.name ?? ''} ${explanation.growth.message ?? ''}`,
          ],
        ]}
      />
      <Table label={t('explain.title')} columns={columns} rows={clusters} keyOf={({ name }) => name} />
      {omitted ? <Empty>{t('explain.omitted', { count: omitted })}</Empty> : null}
    </>
  );
}

function OverridesSection({ fleet, object, seen }: { fleet: Fleet; object: ObjectKey; seen: unknown }) {
  const { data, error, isPending } = useOverrides(fleet, object, seen);
  const changed = (data?.clusters ?? []).filter(({ fields, error }) => error ?? (fields?.length ?? 0) > 0);
  return (
    <Section title={t('overrides.title')}>
      <Failure error={error} />
      {isPending && !error && <Loading />}
      {data && changed.length === 0 && <Empty>{t('overrides.none')}</Empty>}
      {changed.map(({ name, fields = [], error }) => (
        <div key={name}>
          <h3>{name}</h3>
          {error && <p className="message">{error}</p>}
          <FieldsTable label={t('overrides.of', { name })} fields={fields} />
        </div>
      ))}
    </Section>
  );
}

function FieldsTable({ label, fields }: { label: string; fields: OverrideField[] }) {
  const columns: Column<OverrideField>[] = [
    { id: 'path', title: t('overrides.path'), width: '2fr', cell: ({ path }) => <code>{path}</code> },
    {
      id: 'before',
      title: t('overrides.before'),
      width: '2fr',
      cell: ({ before }) => <Value value={before} className="removed" />,
    },
    {
      id: 'after',
      title: t('overrides.after'),
      width: '2fr',
      cell: ({ after }) => <Value value={after} className="added" />,
    },
    {
      id: 'rule',
      title: t('overrides.rule'),
      cell: ({ policy, rule }) => [policy, rule].filter((part) => part !== undefined).join(' · '),
    },
  ];
  return <Table label={label} columns={columns} rows={fields} keyOf={({ path }) => path} />;
}

function Value({ value, className }: { value: unknown; className: string }) {
  const text = shown(value);
  return text === undefined ? (
    <span className="dimmed">{t('overrides.absent')}</span>
  ) : (
    <code className={className}>{text}</code>
  );
}
