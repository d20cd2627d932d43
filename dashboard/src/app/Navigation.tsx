import { useMemo } from 'react';
import { NavLink, useParams } from 'react-router';

import { useRights } from '../api/rights';
import { resources } from '../api/paths';
import { t } from '../i18n';
import { useProjects } from '../projects/projects';

/** Navigation offers what there is for whoever is logged in. */
export function Navigation({ opened }: { opened: boolean }) {
  const rights = useRights('garden', {
    // Everybody reads seeds; what their extensions are, operators and auditors only.
    garden: { verb: 'list', resource: resources.controllerinstallations },
    shoots: { verb: 'list', resource: resources.shoots },
  });
  return (
    <nav id="navigation" aria-label={t('nav.label')} className={opened ? 'shell-nav opened' : 'shell-nav'}>
      <ul>
        <Item to="/projects" title={t('nav.projects')} end />
        {rights.shoots && <Item to="/shoots" title={t('nav.allShoots')} end />}
        <Item to="/fleets" title={t('nav.fleets')} />
        {rights.garden && <Item to="/operations" title={t('nav.operations')} />}
      </ul>
      <ProjectItems />
    </nav>
  );
}

function ProjectItems() {
  const { data: projects } = useProjects();
  const { project, namespace } = useParams();
  const sorted = useMemo(() => [...(projects ?? [])].sort((a, b) => a.name.localeCompare(b.name)), [projects]);
  const current = sorted.find(({ name, projectNamespace }) => name === project || projectNamespace === namespace);
  // Somebody with thousands of projects finds theirs by search.
  const shown = sorted.slice(0, 50);
  if (current && !shown.includes(current)) shown.unshift(current);
  if (shown.length === 0) return null;
  return (
    <>
      <h2 className="nav-heading">{t('nav.ofProjects')}</h2>
      <ul>
        {shown.map(({ uid, name }) => (
          <li key={uid}>
            <NavLink to={`/projects/${name}/shoots`} className={name === current?.name ? 'active' : undefined}>
              {name}
            </NavLink>
          </li>
        ))}
      </ul>
    </>
  );
}

function Item({ to, title, end }: { to: string; title: string; end?: boolean }) {
  return (
    <li>
      <NavLink to={to} end={end ?? false}>
        {title}
      </NavLink>
    </li>
  );
}
