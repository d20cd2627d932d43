import { Button, Group, Text } from '@mantine/core';
import { useQueryClient } from '@tanstack/react-query';
import { useEffect, useState } from 'react';
import { Link, Navigate, Outlet, useLocation, useNavigation } from 'react-router';

import { logOut, useConfig, useSession, type Session } from '../api/session';
import { t, useLanguage } from '../i18n';
import { resetLive, resumeLive, useConnection } from '../live';
import { Failure } from '../ui/Failure';
import { Loading } from '../ui/Loading';
import { useNow, When } from '../ui/When';
import { expiresSoon } from './expiry';
import { Navigation } from './Navigation';
import { Preferences } from './Preferences';
import { Search } from './Search';
import { SessionEnded } from './SessionEnded';

/** Shell is what stands around every page of who is logged in. */
export function Shell() {
  useLanguage();
  const { data: session, error, isPending } = useSession();
  const [last, setLast] = useState<Session>();
  const { pathname, search } = useLocation();
  // Who was logged in here keeps the page with all that they typed while they log in again.
  if (session && session !== last) setLast(session);
  if (isPending) return <Loading />;
  if (error && !last) return <Failure error={error} />;
  if (!session && !last) return <Navigate to={`/login?${new URLSearchParams({ next: pathname + search })}`} replace />;
  const user = (session ?? last)?.user ?? '';
  // Somebody else begins anew: what was typed here, or chosen, is not theirs.
  return <Frame key={user} session={session ?? null} user={user} />;
}

function Frame({ session, user }: { session: Session | null; user: string }) {
  const [menu, setMenu] = useState(false);
  const { pathname } = useLocation();
  const loggedIn = session !== null;
  useEffect(() => {
    if (loggedIn) resumeLive();
  }, [loggedIn]);
  const [shownAt, setShownAt] = useState(pathname);
  // On a phone, the menu is over the page: it goes when one has chosen.
  if (shownAt !== pathname) {
    setShownAt(pathname);
    setMenu(false);
  }
  return (
    <div className="shell">
      <a className="skip" href="#main">
        {t('app.skip')}
      </a>
      <Header user={user} menu={menu} onMenu={() => setMenu(!menu)} />
      <div className="shell-body">
        <Navigation opened={menu} />
        <main id="main" tabIndex={-1}>
          <ConnectionNotice />
          {session && <ExpiryNotice expires={session.expires} />}
          <LoadingPage />
          <Outlet />
          <footer className="shell-footer">
            <Link to="/about">{t('about.title')}</Link>
          </footer>
        </main>
      </div>
      {session === null && <SessionEnded />}
    </div>
  );
}

function Header({ user, menu, onMenu }: { user: string; menu: boolean; onMenu: () => void }) {
  const { data: config } = useConfig();
  const queries = useQueryClient();
  const leave = async () => {
    await logOut(queries);
    resetLive();
    location.assign('/login');
  };
  return (
    <header className="shell-header">
      <Button
        className="menu-button"
        variant="default"
        size="xs"
        aria-expanded={menu}
        aria-controls="navigation"
        onClick={onMenu}
      >
        {t('app.menu')}
      </Button>
      <Link to="/projects" className="brand">
        Trellis
      </Link>
      {config && (
        <Text size="sm" c="dimmed" className="wide-only">
          {config.garden}
        </Text>
      )}
      <Search />
      <Group gap="xs" className="shell-user">
        <Preferences />
        <Text size="sm" className="wide-only" title={t('app.user')}>
          {user}
        </Text>
        <Button variant="default" size="xs" onClick={() => void leave()}>
          {t('app.logOut')}
        </Button>
      </Group>
    </header>
  );
}

// A short loss is not worth a word: the page stays as it is and goes on by itself.
const patience = 3_000;

function ConnectionNotice() {
  const connection = useConnection();
  const [late, setLate] = useState(false);
  useEffect(() => {
    if (connection !== 'lost') return;
    const timer = setTimeout(() => setLate(true), patience);
    return () => {
      clearTimeout(timer);
      setLate(false);
    };
  }, [connection]);
  return (
    <div role="status" aria-live="polite">
      {late && connection === 'lost' && <p className="notice">{t('app.connectionLost')}</p>}
      {connection === 'refused' && <p className="notice">{t('app.connectionRefused')}</p>}
    </div>
  );
}

function ExpiryNotice({ expires }: { expires: string }) {
  const now = useNow();
  return (
    <div role="status" aria-live="polite">
      {expiresSoon(expires, now) && (
        <p className="notice">
          {t('session.soon')} <When time={expires} />
        </p>
      )}
    </div>
  );
}

function LoadingPage() {
  return useNavigation().state === 'loading' ? <Loading /> : null;
}
