import { Text } from '@mantine/core';

import { t } from '../i18n';
import { Page } from '../ui/Page';

export function NotFound() {
  return (
    <Page title={t('app.notFound')}>
      <Text>{t('app.notFoundDo')}</Text>
    </Page>
  );
}
