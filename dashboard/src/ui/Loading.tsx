import { Loader, Text } from '@mantine/core';
import type { ReactNode } from 'react';

import type { LiveState } from '../live/list';
import { t } from '../i18n';
import { Failure } from './Failure';

export function Loading() {
  return (
    <div className="loading" role="status">
      <Loader size="sm" aria-hidden="true" /> {t('ui.loading')}
    </div>
  );
}

export function Empty({ children }: { children: ReactNode }) {
  return (
    <Text c="dimmed" py="sm">
      {children}
    </Text>
  );
}

/** ListState stands above a list: what went wrong with it, or that it is not there yet. */
export function ListState({ list }: { list: LiveState<unknown> }) {
  if (list.error) return <Failure error={new Error(list.error.message ?? list.error.reason)} />;
  return list.complete || list.items.length > 0 ? null : <Loading />;
}
