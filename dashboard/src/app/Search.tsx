import { Button, Modal, TextInput } from '@mantine/core';
import { useHotkeys } from '@mantine/hooks';
import { useState, type KeyboardEvent } from 'react';
import { useNavigate } from 'react-router';

import { resources } from '../api/paths';
import { useKnownRights } from '../api/rights';
import { t } from '../i18n';
import { useLiveList } from '../live';
import { useProjects } from '../projects/projects';
import type { ShootRow } from '../shoots/types';
import { findPlaces, pagesFor, type Place } from './find';
import { useShootsOfProjects } from './shootsOfProjects';

const most = 20;

/** Search finds projects, shoots, fleets, seeds and pages, by Ctrl-K from everywhere. */
export function Search() {
  const [opened, setOpened] = useState(false);
  useHotkeys([['mod+K', () => setOpened(true)]], []);
  return (
    <>
      <Button
        variant="default"
        size="xs"
        onClick={() => setOpened(true)}
        aria-keyshortcuts="Control+K"
        aria-haspopup="dialog"
      >
        {t('search.open')}
        <kbd className="wide-only">Ctrl K</kbd>
      </Button>
      {opened && <SearchDialog onClose={() => setOpened(false)} />}
    </>
  );
}

function SearchDialog({ onClose }: { onClose: () => void }) {
  const [text, setText] = useState('');
  const [chosen, setChosen] = useState(0);
  const navigate = useNavigate();
  const found = findPlaces(usePlaces(text), text, most);
  const index = Math.min(chosen, found.length - 1);
  const go = (place: Place | undefined) => {
    if (!place) return;
    onClose();
    void navigate(place.to);
  };
  const press = (event: KeyboardEvent) => {
    if (event.key === 'ArrowDown') setChosen(Math.min(index + 1, found.length - 1));
    else if (event.key === 'ArrowUp') setChosen(Math.max(index - 1, 0));
    else if (event.key === 'Enter') go(found[index]);
    else return;
    event.preventDefault();
  };
  return (
    <Modal
      opened
      onClose={onClose}
      title={t('search.title')}
      lockScroll={false}
      closeButtonProps={{ 'aria-label': t('ui.close') }}
    >
      <TextInput
        aria-label={t('search.title')}
        placeholder={t('search.hint')}
        value={text}
        onChange={(event) => {
          setText(event.currentTarget.value);
          setChosen(0);
        }}
        onKeyDown={press}
        data-autofocus
        role="combobox"
        aria-expanded={found.length > 0}
        aria-controls="search-results"
        aria-activedescendant={found[index] ? `search-${index}` : undefined}
      />
      <ul id="search-results" role="listbox" aria-label={t('search.title')} className="results">
        {found.map((place, i) => (
          // The keyboard works in the field above, as of every combobox.
          // eslint-disable-next-line jsx-a11y/click-events-have-key-events
          <li
            key={place.to}
            id={`search-${i}`}
            role="option"
            tabIndex={-1}
            aria-selected={i === index}
            onClick={() => go(place)}
          >
            <span>{place.title}</span>
            <span className="dimmed">
              {t(place.kind)} {place.detail}
            </span>
          </li>
        ))}
      </ul>
      <p role="status" className="dimmed">
        {found.length === 0 ? t('search.none') : t('search.count', { count: found.length })}
      </p>
    </Modal>
  );
}

function usePlaces(text: string): Place[] {
  const { data: projects = [] } = useProjects();
  const rights = useKnownRights('garden', {
    seeds: { verb: 'list', resource: resources.controllerinstallations },
    shoots: { verb: 'list', resource: resources.shoots },
  });
  const everything = useLiveList<ShootRow>(
    rights?.shoots ? { cluster: 'garden', resource: resources.shoots, filter: text } : null,
  );
  const own = useShootsOfProjects(!rights || rights.shoots ? undefined : projects).items;
  const seeds = useLiveList<{ name: string }>(rights?.seeds ? { cluster: 'garden', resource: resources.seeds } : null);
  const shoots = rights?.shoots ? everything.items : own;
  return [
    ...projects.map(({ name, description }): Place => ({
      kind: 'search.project',
      title: name,
      detail: description,
      to: `/projects/${name}`,
    })),
    ...shoots.map(({ namespace, name }): Place => ({
      kind: 'search.shoot',
      title: name,
      detail: namespace,
      to: `/shoots/${namespace}/${name}`,
    })),
    ...shoots
      .filter(({ fleet }) => fleet)
      .map(({ namespace, name }): Place => ({
        kind: 'search.fleet',
        title: name,
        detail: namespace,
        to: `/fleets/${namespace}/${name}`,
      })),
    ...pagesFor(rights ?? { seeds: false, shoots: false }),
    ...seeds.items.map(({ name }): Place => ({ kind: 'search.seed', title: name, to: `/operations/seeds/${name}` })),
  ];
}
