package csrapprover

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// nodeLabel of a Machine names its node.
const nodeLabel = "node"

// machineListKind is the kind of lists of machines.
var machineListKind = schema.GroupVersionKind{Group: "machine.sapcloud.io", Version: "v1alpha1", Kind: "MachineList"}

// nodes knows the machines of a shoot and their nodes. It is for one goroutine.
type nodes struct {
	namespace string
	machines  client.Reader
	// target reads Nodes.
	target client.Reader

	// names are the nodes that have a machine, under one key; found are Nodes by name.
	names recent[map[string]bool]
	found recent[*corev1.Node]
}

// unknown says what is not known yet about the requester; empty when all is.
func (n *nodes) unknown(ctx context.Context, request Request) (string, error) {
	names, err := n.names.get("", func() (map[string]bool, error) { return n.list(ctx) })
	if err != nil {
		return "", err
	}
	if !names[request.NodeName] {
		return "no Machine has the label " + nodeLabel + "=" + request.NodeName, nil
	}
	node, err := n.found.get(request.NodeName, func() (*corev1.Node, error) {
		node := &corev1.Node{}
		return node, n.target.Get(ctx, client.ObjectKey{Name: request.NodeName}, node)
	})
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

// list asks for the machines.
func (n *nodes) list(ctx context.Context) (map[string]bool, error) {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(machineListKind)
	if err := n.machines.List(ctx, list, client.InNamespace(n.namespace), client.HasLabels{nodeLabel}); err != nil {
		return nil, fmt.Errorf("listing the machines of namespace %s: %w", n.namespace, err)
	}
	names := map[string]bool{}
	for _, machine := range list.Items {
		names[machine.Labels[nodeLabel]] = true
	}
	return names, nil
}
