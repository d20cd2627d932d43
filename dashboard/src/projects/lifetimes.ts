import { t } from '../i18n';

/** lifetimes of kubeconfigs on offer, in seconds. The garden gives them at most a day. */
export const lifetimes = () => [
  { value: '3600', label: t('kubeconfig.hour') },
  { value: '28800', label: t('kubeconfig.workday') },
  { value: '86400', label: t('kubeconfig.day') },
];
