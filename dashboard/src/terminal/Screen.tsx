import '@xterm/xterm/css/xterm.css';

import { Button, Text } from '@mantine/core';
import { FitAddon } from '@xterm/addon-fit';
import { Terminal } from '@xterm/xterm';
import { useEffect, useRef, useState } from 'react';

import { t } from '../i18n';
import { When } from '../ui/When';
import { inputs, read, size, subprotocol } from './protocol';
import { withSheets } from './sheets';

interface ScreenProps {
  /** path of the socket, see protocol.ts. */
  path: string;
  onClose: () => void;
}

/** Screen is the default export of its own chunk. The terminal begins and ends with it. */
export default function Screen({ path, onClose }: ScreenProps) {
  const parent = useRef<HTMLDivElement>(null);
  const [told, setTold] = useState(t('terminal.connecting'));
  const [expires, setExpires] = useState('');
  useEffect(() => {
    if (!parent.current) return;
    return open(parent.current, path, setTold, setExpires);
  }, [path]);
  return (
    <>
      {expires && (
        <Text size="sm">
          {t('terminal.expires')} <When time={expires} />
        </Text>
      )}
      <p role="status" aria-live="polite">
        {told}
      </p>
      <div ref={parent} className="terminal" role="region" aria-label={t('terminal.screen')} />
      <Button variant="default" onClick={onClose}>
        {t('terminal.end')}
      </Button>
    </>
  );
}

/**
 * newTerminal shows what programs print, and does nothing else that they say: no title, no clipboard, no windows, and
 * no links, which could lead elsewhere than they say.
 */
export function newTerminal(): Terminal {
  return new Terminal({
    screenReaderMode: true,
    convertEol: false,
    linkHandler: { activate: () => undefined },
  });
}

function open(
  parent: HTMLElement,
  path: string,
  tell: (text: string) => void,
  expire: (time: string) => void,
): () => void {
  const terminal = newTerminal();
  const fit = new FitAddon();
  terminal.loadAddon(fit);
  const remove = withSheets(window.document, () => terminal.open(parent));
  const socket = new WebSocket(
    `${location.protocol === 'https:' ? 'wss' : 'ws'}://${location.host}${path}`,
    subprotocol,
  );
  socket.binaryType = 'arraybuffer';
  let ended = t('terminal.ended');
  const send = (message: Uint8Array<ArrayBuffer>) => socket.readyState === WebSocket.OPEN && socket.send(message);
  socket.onopen = () => {
    fit.fit();
    send(size(terminal.cols, terminal.rows));
  };
  socket.onmessage = ({ data }: MessageEvent<ArrayBuffer>) => {
    const message = read(data);
    if (message.type === 'output') terminal.write(message.data);
    if (message.type === 'awaited') tell(message.text);
    if (message.type === 'end') ended = message.status.message || ended;
    if (message.type === 'opened') {
      tell('');
      expire(message.expires);
      terminal.focus();
    }
  };
  socket.onclose = () => {
    terminal.write(`\r\n[${t('terminal.ended')}]\r\n`);
    tell(ended);
  };
  terminal.onData((text) => inputs(text).forEach(send));
  terminal.onResize(({ cols, rows }) => send(size(cols, rows)));
  const observer = new ResizeObserver(() => fit.fit());
  observer.observe(parent);
  return () => {
    observer.disconnect();
    socket.onclose = null;
    socket.close();
    terminal.dispose();
    remove();
  };
}
