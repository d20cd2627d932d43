import { Alert, Anchor, Button, Group, Modal, Stack, Text } from '@mantine/core';
import { useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';

import { loggedInPath, useSession } from '../api/session';
import { t } from '../i18n';

/** SessionEnded asks to log in again elsewhere, so that nothing is lost of what was typed here. */
export function SessionEnded() {
  const { refetch, isFetching } = useSession();
  const [still, setStill] = useState(false);
  const queries = useQueryClient();
  const goOn = async () => {
    const { data } = await refetch();
    setStill(!data);
    if (data) void queries.invalidateQueries();
  };
  return (
    <Modal opened onClose={() => void goOn()} withCloseButton={false} title={t('session.ended')} lockScroll={false}>
      <Stack>
        <Text>{t('session.endedDo')}</Text>
        {still && (
          <Alert color="red" role="alert">
            {t('session.still')}
          </Alert>
        )}
        <Group justify="space-between">
          <Anchor href={`/login?next=${loggedInPath}`} target="_blank" rel="noreferrer">
            {t('session.logIn')}
          </Anchor>
          <Button onClick={() => void goOn()} loading={isFetching}>
            {t('session.goOn')}
          </Button>
        </Group>
      </Stack>
    </Modal>
  );
}
