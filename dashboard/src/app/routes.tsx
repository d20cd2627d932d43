import { createBrowserRouter, Navigate, type RouteObject } from 'react-router';
import type { ComponentType } from 'react';

import { Loading } from '../ui/Loading';
import { LoadFailure } from './LoadFailure';

// page loads a page when somebody comes to it.
const page = (path: string, load: () => Promise<ComponentType>): RouteObject => ({
  path,
  lazy: async () => ({ Component: await load() }),
});

const routes: RouteObject[] = [
  page('/login', async () => (await import('../login/LoginPage')).LoginPage),
  page('/login/done', async () => (await import('../login/LoginPage')).LoggedInPage),
  {
    path: '/',
    lazy: async () => ({ Component: (await import('./Shell')).Shell }),
    HydrateFallback: Loading,
    ErrorBoundary: LoadFailure,
    children: [
      { index: true, element: <Navigate to="/projects" replace /> },
      page('projects', async () => (await import('../projects/ProjectsPage')).ProjectsPage),
      page('projects/:project', async () => (await import('../projects/ProjectPage')).ProjectPage),
      page('shoots', async () => (await import('../shoots/ShootsPage')).ShootsPage),
      page('projects/:project/shoots', async () => (await import('../shoots/ShootsPage')).ShootsPage),
      page('projects/:project/create', async () => (await import('../shoots/CreatePage')).CreatePage),
      page('shoots/:namespace/:name', async () => (await import('../shoots/ShootPage')).ShootPage),
      page('shoots/:namespace/:name/yaml', async () => (await import('../shoots/EditPage')).EditPage),
      page('shoots/:namespace/:name/terminal', async () => (await import('../terminal/TerminalPage')).TerminalPage),
      page('fleets', async () => (await import('../fleets/FleetsPage')).FleetsPage),
      page('fleets/:namespace/:name', async () => (await import('../fleets/FleetPage')).FleetPage),
      page('fleets/:namespace/:name/object', async () => (await import('../fleets/ObjectPage')).ObjectPage),
      page('fleets/:namespace/:name/plan', async () => (await import('../fleets/PlanPage')).PlanPage),
      page('operations', async () => (await import('../operators/GardenPage')).GardenPage),
      page('operations/seeds/:name', async () => (await import('../operators/SeedPage')).SeedPage),
      page('about', async () => (await import('./AboutPage')).AboutPage),
      page('*', async () => (await import('./NotFound')).NotFound),
    ],
  },
];

export const router = createBrowserRouter(routes);
