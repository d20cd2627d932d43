// What tests have before they begin: the English messages.
import en from './i18n/en';
import { setMessages } from './i18n';

setMessages('en', en);
