import '@xyflow/react/dist/style.css';

import { useMantineColorScheme } from '@mantine/core';
import { Background, Controls, Handle, Position, ReactFlow, type Node, type NodeProps } from '@xyflow/react';

import { t } from '../i18n';
import type { MapNode } from './placement';

type PlaceNode = Node<Pick<MapNode, 'label' | 'detail' | 'tone'>, 'place'>;

function Place({ data: { label, detail, tone } }: NodeProps<PlaceNode>) {
  return (
    <div className={`place place-${tone}`}>
      <Handle type="target" position={Position.Left} isConnectable={false} />
      {label}
      {detail && <strong> × {detail}</strong>}
      <Handle type="source" position={Position.Right} isConnectable={false} />
    </div>
  );
}

const nodeTypes = { place: Place };

/** PlacementMap is the default export of its own chunk. What it shows stands in a table as well. */
export default function PlacementMap({ nodes, edges }: { nodes: MapNode[]; edges: [string, string][] }) {
  const { colorScheme } = useMantineColorScheme();
  const placed: PlaceNode[] = nodes.map(({ id, x, y, label, detail, tone }) => ({
    id,
    type: 'place',
    position: { x, y },
    data: { label, detail, tone },
  }));
  return (
    <div className="map" role="figure" aria-label={t('object.map')}>
      <ReactFlow
        nodes={placed}
        edges={edges.map(([source, target]) => ({ id: `${source}-${target}`, source, target }))}
        nodeTypes={nodeTypes}
        colorMode={colorScheme === 'auto' ? 'system' : colorScheme}
        nodesDraggable={false}
        nodesConnectable={false}
        nodesFocusable={false}
        edgesFocusable={false}
        zoomOnScroll={false}
        preventScrolling={false}
        fitView
      >
        <Background />
        <Controls showInteractive={false} aria-label={t('object.zoom')} />
      </ReactFlow>
    </div>
  );
}
