import { useState } from 'react';
import { useNavigate, useParams } from 'react-router';

import { replace } from '../api/objects';
import { apiVersion, resources } from '../api/paths';
import { t } from '../i18n';
import { editable, toYAML } from '../editor/document';
import { Changed, ObjectEditor } from '../editor/ObjectEditor';
import { useLiveObject } from '../live';
import { Offer } from '../ui/Action';
import { ObjectState } from '../ui/Missing';
import { Page } from '../ui/Page';
import { useShootRights } from './rights';
import type { Shoot } from './types';

/** EditPage changes a shoot as YAML. */
export function EditPage() {
  const { namespace = '', name = '' } = useParams();
  const shoot = useLiveObject<Shoot>({ cluster: 'garden', resource: resources.shoots, namespace, name });
  const rights = useShootRights(namespace);
  return (
    <Page title={t('editor.title', { name })} path={[{ title: name, to: `/shoots/${namespace}/${name}` }]}>
      <ObjectState of={shoot} gone={t('shoot.gone', { name })} way={{ title: t('projects.title'), to: '/projects' }} />
      {shoot.object && (
        <Offer may={rights.change} who="projectAdmin">
          <Edit shoot={shoot.object} />
        </Offer>
      )}
    </Page>
  );
}

// The status changes all the time; what people may have changed counts only.
const changes = ({ metadata: { annotations, labels, generation } }: Shoot) =>
  JSON.stringify([annotations, labels, generation]);

function Edit({ shoot }: { shoot: Shoot }) {
  const { namespace, name, resourceVersion } = shoot.metadata;
  const [read, setRead] = useState(shoot);
  const navigate = useNavigate();
  // What is part of a list does not say of what kind it is.
  const before = toYAML(editable({ ...read, apiVersion: apiVersion(resources.shoots), kind: resources.shoots.kind }));
  const isChanged = changes(read) !== changes(shoot);
  const write = (text: string, dryRun: boolean) => {
    // A newer status is no conflict: the version that is written is the latest with what was read.
    const latest = isChanged ? text : text.replace(/^( {2}resourceVersion: ).*$/m, `$1"${resourceVersion ?? ''}"`);
    return replace<Shoot>('garden', resources.shoots, { namespace, name }, latest, { dryRun });
  };
  return (
    <>
      {isChanged && <Changed onReload={() => setRead(shoot)} />}
      <ObjectEditor
        key={read.metadata.resourceVersion}
        resource={resources.shoots}
        before={before}
        initial={before}
        write={write}
        onDone={() => void navigate(`/shoots/${namespace ?? ''}/${name}`)}
      />
    </>
  );
}
