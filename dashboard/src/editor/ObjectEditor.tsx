import { Alert, Button, Group } from '@mantine/core';
import { useDebouncedValue } from '@mantine/hooks';
import { useMutation, useQuery } from '@tanstack/react-query';
import { lazy, Suspense, useEffect, useMemo, useState } from 'react';
import { useBlocker } from 'react-router';

import { ApiError, request } from '../api/http';
import type { Resource } from '../api/paths';
import type { KubernetesObject } from '../api/types';
import { t } from '../i18n';
import { Failure } from '../ui/Failure';
import { Loading } from '../ui/Loading';
import { Dialog } from '../ui/Dialog';
import { editable, statusFaults, syntaxFaults, toYAML } from './document';
import { completionsAt, kindSchema, type Schemas } from './schema';

const CodeEditor = lazy(() => import('./CodeEditor'));
const DiffView = lazy(async () => ({ default: (await import('./CodeEditor')).DiffView }));

interface ObjectEditorProps {
  resource: Resource;
  /** What is there now, as text; empty for a new object. */
  before: string;
  initial: string;
  /** write has the garden check the text, or store it. */
  write: (text: string, dryRun: boolean) => Promise<KubernetesObject>;
  onDone: (object: KubernetesObject) => void;
  onChange?: (text: string) => void;
}

/** ObjectEditor checks a text while it is typed, by the garden, and shows what would change before it does. */
export function ObjectEditor({ resource, before, initial, write, onDone, onChange }: ObjectEditorProps) {
  const [text, setText] = useState(initial);
  const [reviewed, setReviewed] = useState<string>();
  const check = useCheck(text, write);
  const schemas = useSchemas(resource);
  const [done, setDone] = useState(false);
  useLeaving(text !== initial && !done);
  const { mutate, error, isPending } = useMutation({
    mutationFn: () => write(text, true),
    onSuccess: (object) => setReviewed(toYAML(editable(object))),
  });
  const change = (next: string) => {
    setText(next);
    onChange?.(next);
  };
  const apply = async () => {
    const object = await write(text, false);
    setDone(true);
    onDone(object);
  };
  return (
    <>
      <Suspense fallback={<Loading />}>
        <CodeEditor
          label={t('editor.label')}
          text={text}
          onChange={change}
          faults={check.faults}
          complete={(beforeCursor) =>
            completionsAt(schemas, kindSchema(schemas, resource.group, resource.kind), beforeCursor)
          }
        />
      </Suspense>
      <p role="status" aria-live="polite" className="dimmed">
        {check.message}
      </p>
      <Failure error={error ?? check.error} />
      <Group justify="flex-end">
        <Button onClick={() => mutate()} loading={isPending} disabled={text === before || check.faults.length > 0}>
          {t('editor.review')}
        </Button>
      </Group>
      {reviewed !== undefined && (
        <Dialog
          title={t('editor.diff')}
          submit={t('editor.apply')}
          onSubmit={apply}
          onClose={() => setReviewed(undefined)}
          size="80%"
        >
          <Suspense fallback={<Loading />}>
            <DiffView label={t('editor.diff')} before={before} after={reviewed} />
          </Suspense>
        </Dialog>
      )}
    </>
  );
}

function useCheck(text: string, write: ObjectEditorProps['write']) {
  const [settled] = useDebouncedValue(text, 800);
  const syntax = useMemo(() => syntaxFaults(text), [text]);
  const isText = syntax.length === 0 && text.trim() !== '';
  const { error, isFetching, isSuccess } = useQuery({
    queryKey: ['check', settled],
    queryFn: () => write(settled, true),
    enabled: isText && settled === text,
    retry: false,
    staleTime: Infinity,
    gcTime: 0,
  });
  const refused = useMemo(
    () => (error instanceof ApiError && settled === text ? statusFaults(settled, error.status) : []),
    [error, settled, text],
  );
  const faults = useMemo(() => [...syntax, ...refused], [syntax, refused]);
  if (syntax.length > 0) return { faults, message: t('editor.noYAML') };
  if (isFetching || settled !== text) return { faults, message: t('editor.checking') };
  return { faults, error, message: isSuccess ? t('editor.good') : '' };
}

const none: Schemas = {};

function useSchemas({ group, version }: Resource): Schemas {
  const { data } = useQuery({
    queryKey: ['openapi', group, version],
    queryFn: () => request<{ components: { schemas: Schemas } }>(`/api/garden/openapi/v3/apis/${group}/${version}`),
    staleTime: Infinity,
    retry: false,
  });
  return data?.components.schemas ?? none;
}

/** useLeaving asks before what was typed is left. */
function useLeaving(changed: boolean) {
  const blocker = useBlocker(changed);
  useEffect(() => {
    if (blocker.state !== 'blocked') return;
    if (window.confirm(t('editor.leave'))) blocker.proceed();
    else blocker.reset();
  }, [blocker]);
}

/** Changed tells that somebody else changed the object since it was read. */
export function Changed({ onReload }: { onReload: () => void }) {
  return (
    <Alert color="yellow" role="alert" mb="md" title={t('editor.changed')}>
      <Group justify="space-between">
        {t('editor.changedDo')}
        <Button size="xs" variant="default" onClick={onReload}>
          {t('editor.reload')}
        </Button>
      </Group>
    </Alert>
  );
}
