package csrapprover

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// knownFor is how long what is known of machines and nodes is believed. It bounds what any number of requests costs: one question to the seed, and
// one to the shoot for each machine, in that time.
const knownFor = 250 * time.Millisecond

// nodes knows the machines of a shoot and their nodes. It is for one goroutine.
type nodes struct {
	namespace string
	machines  client.Reader
	// target reads Nodes.
	target client.Reader

	asked time.Time
	// names are the nodes that have a machine; err is why they are not known.
	names map[string]bool
	err   error
	// found are the nodes that were asked for since.
	found map[string]foundNode
}

// foundNode is the answer to a question: a node with its addresses, or an error.
type foundNode struct {
	node *corev1.Node
	err  error
}

// unknown says what is not known yet about the requester; empty when all is.
func (n *nodes) unknown(ctx context.Context, request Request) (string, error) {
	n.refresh(ctx)
	if n.err != nil {
		return "", n.err
	}
	if !n.names[request.NodeName] {
		return "no Machine has the label " + nodeLabel + "=" + request.NodeName, nil
	}
	node, err := n.node(ctx, request.NodeName)
	if apierrors.IsNotFound(err) {
		return "the Node does not exist", nil
	}
	if err != nil {
		return "", err
	}
	if missing := request.Missing(node); len(missing) > 0 {
		return fmt.Sprintf("the Node does not have the names or addresses %v", missing), nil
	}
	return "", nil
}

// refresh asks for the machines when what is known is too old.
func (n *nodes) refresh(ctx context.Context) {
	if !n.asked.IsZero() && time.Since(n.asked) < knownFor {
		return
	}
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(machineListKind)
	n.names, n.found, n.err = map[string]bool{}, map[string]foundNode{}, nil
	if err := n.machines.List(ctx, list, client.InNamespace(n.namespace), client.HasLabels{nodeLabel}); err != nil {
		n.err = fmt.Errorf("listing the machines of namespace %s: %w", n.namespace, err)
	}
	for _, machine := range list.Items {
		n.names[machine.Labels[nodeLabel]] = true
	}
	n.asked = time.Now()
}

// node asks for a node once.
func (n *nodes) node(ctx context.Context, name string) (*corev1.Node, error) {
	if known, asked := n.found[name]; asked {
		return known.node, known.err
	}
	node := &corev1.Node{}
	err := n.target.Get(ctx, client.ObjectKey{Name: name}, node)
	n.found[name] = foundNode{node: node, err: err}
	return node, err
}
