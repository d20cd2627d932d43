import '@mantine/core/styles.css';
import './app/theme.css';

import { createRoot } from 'react-dom/client';

import { App } from './app/App';
import { applyScheme } from './app/scheme';
import { chooseLanguage, preferredLanguage, storedLanguage } from './i18n';

applyScheme();

const root = document.getElementById('root');
if (!root) throw new Error('index.html has no element #root');

await chooseLanguage(preferredLanguage(storedLanguage(), navigator.languages), false);
createRoot(root).render(<App />);
