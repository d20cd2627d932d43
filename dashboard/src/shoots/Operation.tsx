import { Progress, Text } from '@mantine/core';
import { useMemo, useState } from 'react';

import { resources } from '../api/paths';
import { known, t } from '../i18n';
import { useLiveObject } from '../live';
import { Codes } from '../ui/Conditions';
import { Section } from '../ui/Page';
import { ToneBadge, type Tone } from '../ui/Tone';
import { When } from '../ui/When';
import { graphIn, graphName, isPresent, type Graph, type GraphMap, type Fault } from './graph';
import { GraphView } from './GraphView';
import { follow, operationsOf, type Course, type Task, type TaskState } from './operation';
import type { Shoot } from './types';

const tones: Record<TaskState, Tone> = { done: 'good', running: 'busy', failed: 'bad' };
const stateTones: Record<string, Tone> = {
  Succeeded: 'good',
  Processing: 'busy',
  Pending: 'busy',
  Error: 'bad',
  Failed: 'bad',
  Aborted: 'warning',
};

/** Operation is what is done to the shoot now, or was last, task by task, and why it does not go on. */
export function Operation({ shoot }: { shoot: Shoot }) {
  const operation = shoot.status?.lastOperation;
  const errors = shoot.status?.lastErrors ?? [];
  const course = useCourse(shoot);
  const { graph, fault } = useGraph(shoot);
  const waiting = operationsOf(shoot.metadata.annotations);
  const untold = errors.filter(({ taskID }) => !taskID);
  return (
    <Section title={t('operation.title')}>
      <div aria-live="polite">
        {!operation && <Text>{t(shoot.spec.seedName ? 'operation.waitsForGardenlet' : 'operation.waitsForSeed')}</Text>}
        {operation && (
          <p>
            <ToneBadge tone={stateTones[operation.state] ?? 'neutral'}>
              {known('operationType', operation.type) ?? operation.type}:{' '}
              {known('operationState', operation.state) ?? operation.state}
            </ToneBadge>{' '}
            <When time={operation.lastUpdateTime} />
          </p>
        )}
        {waiting.length > 0 && <Text size="sm">{t('operation.asked', { operations: waiting.join(', ') })}</Text>}
      </div>
      {operation && operation.state !== 'Succeeded' && (
        <>
          <Progress value={operation.progress} aria-label={t('operation.progress')} my="sm" />
          <Text size="sm">{t('operation.percent', { percent: operation.progress })}</Text>
          {operation.state !== 'Processing' && <p className="message">{operation.description}</p>}
        </>
      )}
      {graph && <GraphView graph={graph} errors={errors} isDone={operation?.state === 'Succeeded'} />}
      {fault && <Text size="sm">{t('graph.notShown', { reason: t(fault.key, fault.values) })}</Text>}
      {!graph && course && course.tasks.length > 0 && operation?.state !== 'Succeeded' && (
        <Tasks tasks={course.tasks} />
      )}
      {untold.map(({ description, codes }) => (
        <div key={description}>
          <p className="message">{description}</p>
          <Codes codes={codes ?? []} />
        </div>
      ))}
    </Section>
  );
}

/** The graph of the present operation, if gardenlet told it and the viewer may read it, or why it cannot be shown. */
function useGraph(shoot: Shoot): { graph?: Graph; fault?: Fault } {
  const { namespace = '', name } = shoot.metadata;
  const { object } = useLiveObject<GraphMap>({
    cluster: 'garden',
    resource: resources.configmaps,
    namespace,
    name: graphName(name),
  });
  const { graph, fault } = useMemo(() => (object ? graphIn(object, shoot) : {}), [object, shoot]);
  if (!graph || graph.tasks.length === 0 || !isPresent(graph, shoot)) return { fault };
  return { graph };
}

/** What was seen of an operation while the page was open. */
function useCourse({ status }: Shoot): Course | undefined {
  const operation = status?.lastOperation;
  const [course, setCourse] = useState<Course>();
  const [seen, setSeen] = useState<typeof operation>();
  if (operation && operation !== seen) {
    setSeen(operation);
    setCourse(follow(course, operation, status?.lastErrors));
  }
  return course;
}

function Tasks({ tasks }: { tasks: Task[] }) {
  return (
    <ol className="tasks" aria-label={t('operation.tasks')}>
      {tasks.map(({ name, state, error, codes }) => (
        <li key={name}>
          <ToneBadge tone={tones[state]}>{t(`task.${state}`)}</ToneBadge> {name}
          {error && <p className="message">{error}</p>}
          <Codes codes={codes ?? []} />
        </li>
      ))}
    </ol>
  );
}
