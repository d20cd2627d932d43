import { createTheme, MantineProvider } from '@mantine/core';
import { QueryClient, QueryClientProvider } from '@tanstack/react-query';
import { RouterProvider } from 'react-router';

import { ApiError, currentUser } from '../api/http';
import { sessionKey, watchSession } from '../api/session';
import { useLanguage } from '../i18n';
import { onLiveVisitor, resetLive, resumeLive } from '../live';
import { router } from './routes';

const queries = new QueryClient({
  defaultOptions: {
    queries: {
      refetchOnWindowFocus: false,
      // What was refused is refused again; only who cannot be reached, or has too much to do, is asked once more.
      retry: (failures, error) => failures < 3 && (!(error instanceof ApiError) || [0, 429, 503].includes(error.code)),
    },
  },
});

watchSession(queries, resetLive);
// To read the session renews it, if it can be; else the pages ask to log in.
const readSession = () => queries.refetchQueries({ queryKey: sessionKey });
onLiveVisitor({
  is: (user) => user === currentUser(),
  ended: () => void readSession().then(() => queries.getQueryData(sessionKey) && resumeLive()),
  isServed: () => readSession().then(() => queries.getQueryState(sessionKey)?.status === 'success'),
});

// Colours with enough contrast for white text; their variables are in theme.css.
const theme = createTheme({ primaryColor: 'blue', primaryShade: 8, defaultRadius: 'sm', respectReducedMotion: true });

/** App has no styles in the page itself: the content security policy allows those of this site's files only. */
export function App() {
  useLanguage();
  return (
    <MantineProvider theme={theme} defaultColorScheme="auto" withCssVariables={false} withGlobalClasses={false}>
      <QueryClientProvider client={queries}>
        <RouterProvider router={router} />
      </QueryClientProvider>
    </MantineProvider>
  );
}
