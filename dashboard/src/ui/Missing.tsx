import { Alert, Anchor } from '@mantine/core';
import type { ReactNode } from 'react';
import { Link } from 'react-router';

import { ApiError } from '../api/http';
import type { LiveObject } from '../live';
import { known, t } from '../i18n';
import { Failure } from './Failure';
import { Loading } from './Loading';

/** Way leads on from where nothing is. */
interface Way {
  title: string;
  to: string;
}

/** Missing says that something is not there, what to do, and where to go on. */
export function Missing({ what, help, way }: { what: string; help: ReactNode; way: Way }) {
  return (
    <Alert role="alert" color="yellow" title={what} mb="md">
      <p>{help}</p>
      <Anchor component={Link} to={way.to}>
        {way.title}
      </Anchor>
    </Alert>
  );
}

/** Unreadable says why something cannot be read, what to do, and where to go on. */
export function Unreadable({ error, way }: { error: unknown; way: Way }) {
  const help = error instanceof ApiError ? known('unreadable', String(error.code)) : undefined;
  return (
    <>
      <Failure error={error} />
      <p>
        {help ?? t('unreadable.other')}{' '}
        <Anchor component={Link} to={way.to}>
          {way.title}
        </Anchor>
      </p>
    </>
  );
}

interface ObjectStateProps {
  of: LiveObject<unknown>;
  /** What is said where there is no such object. */
  gone: string;
  way: Way;
}

/** ObjectState stands where an object is not read: it is on its way, or not there, or not for who asks. */
export function ObjectState({ of: { object, missing, error }, gone, way }: ObjectStateProps) {
  if (error) return <Unreadable error={new ApiError(error)} way={way} />;
  if (missing) return <Missing what={gone} help={t('unreadable.404')} way={way} />;
  return object === undefined ? <Loading /> : null;
}
