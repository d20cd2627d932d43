import { Button, Stack, Text, Title } from '@mantine/core';
import { useRouteError } from 'react-router';

import { t } from '../i18n';
import { Failure } from '../ui/Failure';

/** LoadFailure stands where a page broke, or could not be loaded, as after an update of the server. */
export function LoadFailure() {
  const error = useRouteError();
  return (
    <main className="alone">
      <Stack>
        <Title order={1} size="h2">
          {t('app.broken')}
        </Title>
        <Text>{t('app.brokenDo')}</Text>
        <Failure error={error} />
        <Button onClick={() => location.reload()}>{t('app.reload')}</Button>
      </Stack>
    </main>
  );
}
