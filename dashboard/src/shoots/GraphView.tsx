import { Button } from '@mantine/core';
import { lazy, Suspense, useId, useState } from 'react';

import type { LastError } from '../api/types';
import { t } from '../i18n';
import { Codes } from '../ui/Conditions';
import { Loading } from '../ui/Loading';
import { ToneBadge } from '../ui/Tone';
import { graphTone, stageList, type Graph, type GraphTask } from './graph';
import { Lasting } from './Lasting';

const GraphPicture = lazy(() => import('./GraphPicture'));

interface GraphViewProps {
  graph: Graph;
  /** Errors of the present try; their codes are explained with the tasks. */
  errors: LastError[];
  /** Whether all is done, and there is nothing to look at unless somebody wants to. */
  isDone: boolean;
}

/** GraphView is an operation task by task: as a picture, and as a list of its stages with what is awaited. */
export function GraphView({ graph, errors, isDone }: GraphViewProps) {
  // What was open while the operation ran stays so when it is done.
  const [isOpen, setOpen] = useState(!isDone);
  const id = useId();
  const count = graph.tasks.filter(({ state }) => state !== 'Skipped').length;
  return (
    <>
      <Button
        variant="subtle"
        size="compact-sm"
        my="xs"
        aria-expanded={isOpen}
        aria-controls={id}
        onClick={() => setOpen(!isOpen)}
      >
        {isOpen ? t('graph.hide') : t('graph.show', { count })}
      </Button>
      <div id={id} className={isOpen ? 'graph' : undefined}>
        {isOpen && (
          <>
            <Suspense fallback={<Loading />}>
              <GraphPicture key={graph.started} graph={graph} />
            </Suspense>
            <Stages graph={graph} errors={errors} />
          </>
        )}
      </div>
    </>
  );
}

function Stages({ graph, errors }: Pick<GraphViewProps, 'graph' | 'errors'>) {
  return (
    <ol className="stages" aria-label={t('graph.stages')}>
      {stageList(graph.tasks).map(({ number, done, total, open }) => (
        <li key={number}>
          {t('graph.stage', { number, done, total })}
          {open.length > 0 && (
            <ul>
              {open.map((task) => (
                <OpenTask key={task.name} task={task} codes={codesOf(task, errors)} />
              ))}
            </ul>
          )}
        </li>
      ))}
    </ol>
  );
}

const codesOf = ({ name, state }: GraphTask, errors: LastError[]) =>
  state === 'Failed' ? (errors.find(({ taskID }) => taskID === name)?.codes ?? []) : [];

/** OpenTask is a task that runs or failed, how long, and why it is not done. */
function OpenTask({ task, codes }: { task: GraphTask; codes: string[] }) {
  const { name, state, error } = task;
  return (
    <li>
      <ToneBadge tone={graphTone(state)}>{t(`task.${state}`)}</ToneBadge> {name}
      <Lasting task={task} />
      {error && <p className="message">{error}</p>}
      <Codes codes={codes} />
    </li>
  );
}
