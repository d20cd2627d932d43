import { Button, Group, Modal, Stack, TextInput } from '@mantine/core';
import { useMutation } from '@tanstack/react-query';
import { useState, type FormEvent, type ReactNode } from 'react';

import { t } from '../i18n';
import { Failure } from './Failure';

interface DialogProps {
  title: string;
  submit: string;
  /** What is done. The dialog closes when it is, and stays with all that was typed when it fails. */
  onSubmit: () => Promise<unknown>;
  onClose: () => void;
  danger?: boolean;
  disabled?: boolean;
  size?: string;
  children: ReactNode;
}

/** Dialog is a form in a window of its own. It is mounted when it opens, so that it begins empty. */
export function Dialog({ title, submit, onSubmit, onClose, danger, disabled, size, children }: DialogProps) {
  const { mutate, isPending, error } = useMutation({ mutationFn: onSubmit, onSuccess: onClose });
  const send = (event: FormEvent) => {
    event.preventDefault();
    mutate();
  };
  return (
    <Modal
      opened
      onClose={onClose}
      title={title}
      lockScroll={false}
      size={size}
      closeButtonProps={{ 'aria-label': t('ui.close') }}
    >
      <form onSubmit={send}>
        <Stack>
          {children}
          <Failure error={error} />
          <Group justify="flex-end">
            <Button variant="default" onClick={onClose}>
              {t('ui.cancel')}
            </Button>
            <Button type="submit" color={danger ? 'red' : undefined} disabled={disabled} loading={isPending}>
              {submit}
            </Button>
          </Group>
        </Stack>
      </form>
    </Modal>
  );
}

interface NamedDialogProps extends Omit<DialogProps, 'danger' | 'disabled'> {
  name: string;
}

/** NamedDialog asks for the name of what is lost for good. */
export function NamedDialog({ name, children, ...dialog }: NamedDialogProps) {
  const [typed, setTyped] = useState('');
  return (
    <Dialog {...dialog} danger disabled={typed !== name}>
      {children}
      <TextInput
        label={t('ui.typeName', { name })}
        value={typed}
        onChange={(event) => setTyped(event.currentTarget.value)}
        autoComplete="off"
        data-autofocus
      />
    </Dialog>
  );
}
