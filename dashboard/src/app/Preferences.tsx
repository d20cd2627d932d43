import { NativeSelect, useMantineColorScheme, type MantineColorScheme } from '@mantine/core';

import { chooseLanguage, currentLanguage, languages, t, type Language } from '../i18n';

/** Preferences are kept in this browser. */
export function Preferences() {
  const { colorScheme, setColorScheme } = useMantineColorScheme();
  return (
    <>
      <NativeSelect
        size="xs"
        aria-label={t('app.language')}
        value={currentLanguage()}
        onChange={(event) => void chooseLanguage(event.currentTarget.value as Language)}
        data={languages.map(({ id, name }) => ({ value: id, label: name }))}
      />
      <NativeSelect
        size="xs"
        aria-label={t('app.scheme')}
        value={colorScheme}
        onChange={(event) => setColorScheme(event.currentTarget.value as MantineColorScheme)}
        data={[
          { value: 'auto', label: t('app.schemeAuto') },
          { value: 'light', label: t('app.schemeLight') },
          { value: 'dark', label: t('app.schemeDark') },
        ]}
      />
    </>
  );
}
