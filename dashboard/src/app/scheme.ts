/** schemeOf is light or dark: what the viewer chose here before, else what their system has. */
export function schemeOf(chosen: string | null, systemIsDark: boolean): 'light' | 'dark' {
  if (chosen === 'light' || chosen === 'dark') return chosen;
  return systemIsDark ? 'dark' : 'light';
}

/** applyScheme has the first picture in the right colours, before Mantine, which keeps them, is there. */
export function applyScheme() {
  const scheme = schemeOf(
    localStorage.getItem('mantine-color-scheme-value'),
    matchMedia('(prefers-color-scheme: dark)').matches,
  );
  document.documentElement.dataset.mantineColorScheme = scheme;
}
