import '@xterm/xterm/css/xterm.css';

import { Button } from '@mantine/core';
import { FitAddon } from '@xterm/addon-fit';
import { Terminal } from '@xterm/xterm';
import { useEffect, useRef, useState } from 'react';

import { request } from '../api/http';
import { t } from '../i18n';
import { input, read, size, subprotocol } from './protocol';
import { documentWithSheets } from './sheets';

interface ScreenProps {
  id: string;
  onClose: () => void;
}

/** Screen is the default export of its own chunk. The terminal ends with it. */
export default function Screen({ id, onClose }: ScreenProps) {
  const parent = useRef<HTMLDivElement>(null);
  const [told, setTold] = useState(t('terminal.connecting'));
  useEffect(() => {
    if (!parent.current) return;
    return open(parent.current, id, setTold);
  }, [id]);
  return (
    <>
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

function open(parent: HTMLElement, id: string, tell: (text: string) => void): () => void {
  const { document, remove } = documentWithSheets(window.document);
  const terminal = new Terminal({ documentOverride: document, screenReaderMode: true, convertEol: false });
  const fit = new FitAddon();
  terminal.loadAddon(fit);
  terminal.open(parent);
  const socket = new WebSocket(
    `${location.protocol === 'https:' ? 'wss' : 'ws'}://${location.host}/api/terminal/${encodeURIComponent(id)}`,
    subprotocol,
  );
  socket.binaryType = 'arraybuffer';
  const send = (message: Uint8Array<ArrayBuffer>) => socket.readyState === WebSocket.OPEN && socket.send(message);
  socket.onopen = () => {
    fit.fit();
    send(size(terminal.cols, terminal.rows));
    terminal.focus();
  };
  socket.onmessage = ({ data }: MessageEvent<ArrayBuffer>) => {
    const message = read(data);
    if (message.type === 'output') {
      tell('');
      terminal.write(message.data);
    }
    if (message.type === 'awaited') tell(message.text);
    if (message.type === 'end') tell(message.status.message ?? t('terminal.ended'));
  };
  socket.onclose = () => terminal.write(`\r\n[${t('terminal.ended')}]\r\n`);
  terminal.onData((text) => send(input(text)));
  terminal.onResize(({ cols, rows }) => send(size(cols, rows)));
  const observer = new ResizeObserver(() => fit.fit());
  observer.observe(parent);
  return () => {
    observer.disconnect();
    socket.onclose = null;
    socket.close();
    terminal.dispose();
    remove();
    // It ends by itself soon; who leaves has it end at once.
    request(`/api/terminal/${encodeURIComponent(id)}`, { method: 'DELETE', body: {} }).catch(() => undefined);
  };
}
