import { Checkbox, Group, Text } from '@mantine/core';
import { useState } from 'react';

import { t } from '../i18n';
import { Action } from '../ui/Action';
import { Dialog, NamedDialog } from '../ui/Dialog';
import { Empty, ListState } from '../ui/Loading';
import { Section } from '../ui/Page';
import { When } from '../ui/When';
import { answerDeletions, useDeletions, type Fleet } from './api';
import { byCluster, objectName } from './placement';
import type { HeldDeletion } from './types';

const keyOf = ({ work }: HeldDeletion) => `${work.namespace}/${work.name}`;

/** Deletions wait for somebody to say that they are meant. */
export function Deletions({ fleet }: { fleet: Fleet }) {
  const list = useDeletions(fleet);
  const [chosen, setChosen] = useState<string[]>([]);
  const { items } = list;
  const picked = items.filter((item) => chosen.includes(keyOf(item)));
  return (
    <>
      <ListState list={list} />
      {list.complete && items.length === 0 && <Empty>{t('deletions.none')}</Empty>}
      {items.length > 0 && (
        <Group mb="md">
          <Action
            label={t('deletions.confirm', { count: picked.length })}
            color="red"
            disabled={picked.length === 0}
            dialog={(close) => <Confirm fleet={fleet} picked={picked} onClose={close} />}
          />
          <Action
            label={t('deletions.keep', { count: picked.length })}
            disabled={picked.length === 0}
            dialog={(close) => <Keep fleet={fleet} picked={picked} onClose={close} />}
          />
        </Group>
      )}
      <Checkbox.Group value={chosen} onChange={setChosen} aria-label={t('fleet.deletions')}>
        {byCluster(items).map(({ cluster, deletions }) => (
          <Section key={cluster} title={cluster}>
            {deletions.map((deletion) => (
              <Checkbox key={keyOf(deletion)} value={keyOf(deletion)} label={<Label deletion={deletion} />} />
            ))}
          </Section>
        ))}
      </Checkbox.Group>
    </>
  );
}

function Label({ deletion: { object, since } }: { deletion: HeldDeletion }) {
  return (
    <>
      {objectName(object)}{' '}
      <span className="dimmed">
        <When time={since} />
      </span>
    </>
  );
}

interface AnswerProps {
  fleet: Fleet;
  picked: HeldDeletion[];
  onClose: () => void;
}

function Confirm(props: AnswerProps) {
  return (
    <NamedDialog
      name={props.fleet.name}
      title={t('deletions.confirm', { count: props.picked.length })}
      submit={t('deletions.confirmDo')}
      onSubmit={() => answerDeletions(props.fleet, props.picked, 'confirm')}
      onClose={props.onClose}
    >
      <Text>{t('deletions.confirmHelp')}</Text>
      <ul>
        {props.picked.slice(0, 20).map((deletion) => (
          <li key={keyOf(deletion)}>
            {objectName(deletion.object)} · {deletion.cluster}
          </li>
        ))}
      </ul>
    </NamedDialog>
  );
}

function Keep(props: AnswerProps) {
  return (
    <Dialog
      title={t('deletions.keep', { count: props.picked.length })}
      submit={t('deletions.keepDo')}
      onSubmit={() => answerDeletions(props.fleet, props.picked, 'keep')}
      onClose={props.onClose}
    >
      <Text>{t('deletions.keepHelp')}</Text>
    </Dialog>
  );
}
