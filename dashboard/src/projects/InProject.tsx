import type { ReactNode } from 'react';

import { t } from '../i18n';
import { Loading } from '../ui/Loading';
import { Missing, Unreadable } from '../ui/Missing';
import { useProjects } from './projects';

/** InProject shows what needs the namespace of a project; else it says why there is none, and what to do. */
export function InProject({ name, children }: { name: string; children: (namespace: string) => ReactNode }) {
  const { data: projects, error } = useProjects();
  const project = projects?.find((each) => each.name === name);
  const way = { title: t('projects.title'), to: '/projects' };
  if (project?.projectNamespace) return children(project.projectNamespace);
  if (project) return <Missing what={t('project.unready', { name })} help={t('project.unreadyDo')} way={way} />;
  if (projects) return <Missing what={t('project.unknown', { name })} help={t('project.unknownDo')} way={way} />;
  return error ? <Unreadable error={error} way={way} /> : <Loading />;
}
