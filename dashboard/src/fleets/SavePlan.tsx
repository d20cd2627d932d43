import { Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';

import { useKnownRights, type Check } from '../api/rights';
import { t } from '../i18n';
import { Action, Offer } from '../ui/Action';
import { Dialog } from '../ui/Dialog';
import { Failure } from '../ui/Failure';
import { clusterOf, type Fleet } from './api';
import { objectName } from './placement';
import { save, targetsOf, type Target } from './save';

/** Asked is what a plan was made of. */
export interface Asked {
  documents: string;
  into: string;
  isDeletion: boolean;
}

const nameOf = ({ object: { kind = '', metadata }, namespace }: Target) =>
  objectName({ apiVersion: '', kind, namespace, name: metadata.name });

/** SavePlan offers to do what was planned, to who may do all of it. */
export function SavePlan({ fleet, asked }: { fleet: Fleet; asked: Asked }) {
  const { documents, into } = asked;
  const { data: targets, error } = useQuery({
    queryKey: ['targets', fleet, documents, into],
    queryFn: () => targetsOf(fleet, documents, into),
    retry: false,
  });
  if (error) return <Failure error={error} />;
  return targets && targets.length > 0 ? <OfferSave fleet={fleet} asked={asked} targets={targets} /> : null;
}

function OfferSave({ fleet, asked: { isDeletion }, targets }: { fleet: Fleet; asked: Asked; targets: Target[] }) {
  const verb = isDeletion ? 'delete' : 'patch';
  const checks = targets.map(({ object, resource, namespace }, i): [string, Check] => [
    String(i),
    { verb, resource, namespace, name: object.metadata.name },
  ]);
  const rights = useKnownRights(clusterOf(fleet), Object.fromEntries(checks));
  if (!rights) return null;
  const title = t(isDeletion ? 'plan.deleteAll' : 'plan.save', { count: targets.length });
  return (
    <Offer may={Object.values(rights).every(Boolean)} who="projectAdmin">
      <Action
        label={title}
        color={isDeletion ? 'red' : undefined}
        dialog={(close) => (
          <Dialog
            title={title}
            submit={title}
            danger={isDeletion}
            onSubmit={() => save(fleet, targets, isDeletion)}
            onClose={close}
          >
            <Text>{t(isDeletion ? 'plan.deleteHelp' : 'plan.saveHelp')}</Text>
            <ul>
              {targets.map((target) => (
                <li key={nameOf(target)}>{nameOf(target)}</li>
              ))}
            </ul>
          </Dialog>
        )}
      />
    </Offer>
  );
}
