import { Button, Text, type ButtonProps } from '@mantine/core';
import { useState, type ReactNode } from 'react';

import { t, type MessageKey } from '../i18n';

/** Who may do what somebody else may not: see docs/authorization.md. */
type Who = 'projectAdmin' | 'accessManager' | 'accountManager' | 'operator';

const whoMay: Record<Who, MessageKey> = {
  projectAdmin: 'rights.projectAdmin',
  accessManager: 'rights.accessManager',
  accountManager: 'rights.accountManager',
  operator: 'rights.operator',
};

/** Offer shows what somebody may do; else it says who may. */
export function Offer({ may, who, children }: { may: boolean; who: Who; children: ReactNode }) {
  if (may) return <>{children}</>;
  return (
    <Text size="sm" c="dimmed">
      {t(whoMay[who])}
    </Text>
  );
}

interface ActionProps extends ButtonProps {
  label: string;
  /** The dialog that the button opens. */
  dialog: (close: () => void) => ReactNode;
}

/** Action is a button with a dialog. */
export function Action({ label, dialog, ...button }: ActionProps) {
  const [opened, setOpened] = useState(false);
  return (
    <>
      <Button variant="default" size="xs" {...button} onClick={() => setOpened(true)}>
        {label}
      </Button>
      {opened && dialog(() => setOpened(false))}
    </>
  );
}
