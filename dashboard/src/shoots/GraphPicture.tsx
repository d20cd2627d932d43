import '@xyflow/react/dist/style.css';

import { useMantineColorScheme } from '@mantine/core';
import { Background, Controls, Handle, Position, ReactFlow, type Node, type NodeProps } from '@xyflow/react';
import { useState } from 'react';

import { t } from '../i18n';
import { ToneBadge } from '../ui/Tone';
import { focusOf, graphTone, layoutOf, type Graph, type GraphTask } from './graph';
import { Lasting } from './Lasting';

type TaskNode = Node<{ task: GraphTask }, 'task'>;

/** All tasks have one size, so that edges are drawn before anything is measured, and stay when states change. */
const size = { width: 232, height: 76 };
const handles = [
  { type: 'target' as const, position: Position.Left, x: 0, y: size.height / 2, width: 1, height: 1 },
  { type: 'source' as const, position: Position.Right, x: size.width, y: size.height / 2, width: 1, height: 1 },
];

function Task({ data: { task } }: NodeProps<TaskNode>) {
  return (
    <div className={`place place-task place-${graphTone(task.state)}`} title={task.error}>
      <Handle type="target" position={Position.Left} isConnectable={false} />
      <span className="task-name">{task.name}</span>
      <ToneBadge tone={graphTone(task.state)}>
        {t(`task.${task.state}`)}
        <Lasting task={task} />
      </ToneBadge>
      <Handle type="source" position={Position.Right} isConnectable={false} />
    </div>
  );
}

const nodeTypes = { task: Task };

/** GraphPicture is the default export of its own chunk. What it shows stands in a list as well. */
export default function GraphPicture({ graph }: { graph: Graph }) {
  const { colorScheme } = useMantineColorScheme();
  const [isMeasured, setMeasured] = useState(false);
  // Where one looks at first; after that, it is the viewer's.
  const [focus] = useState(() => focusOf(graph.tasks).map((id) => ({ id })));
  const { nodes, edges } = layoutOf(graph.tasks);
  const placed: TaskNode[] = nodes.map(({ id, x, y, task }) => ({
    id,
    type: 'task',
    position: { x, y },
    ...size,
    // Without this, React Flow measures all of them again whenever one changes.
    measured: isMeasured ? size : undefined,
    handles,
    data: { task },
  }));
  const nameOf = (id: string) => graph.tasks[Number(id)]?.name ?? id;
  return (
    <div className="map map-graph" role="figure" aria-label={t('graph.picture')}>
      <ReactFlow
        nodes={placed}
        edges={edges.map(([source, target]) => ({
          id: `${source}-${target}`,
          source,
          target,
          ariaLabel: t('graph.edge', { from: nameOf(source), to: nameOf(target) }),
        }))}
        nodeTypes={nodeTypes}
        onNodesChange={(changes) => {
          if (changes.some(({ type }) => type === 'dimensions')) setMeasured(true);
        }}
        colorMode={colorScheme === 'auto' ? 'system' : colorScheme}
        nodesDraggable={false}
        nodesConnectable={false}
        nodesFocusable={false}
        edgesFocusable={false}
        elementsSelectable={false}
        disableKeyboardA11y
        zoomOnScroll={false}
        preventScrolling={false}
        minZoom={0.1}
        fitView
        fitViewOptions={{ minZoom: 0.6, maxZoom: 1, nodes: focus.length > 0 ? focus : undefined }}
        ariaLabelConfig={{
          'controls.zoomIn.ariaLabel': t('graph.zoomIn'),
          'controls.zoomOut.ariaLabel': t('graph.zoomOut'),
          'controls.fitView.ariaLabel': t('graph.fitView'),
        }}
      >
        <Background />
        <Controls showInteractive={false} aria-label={t('object.zoom')} />
      </ReactFlow>
    </div>
  );
}
