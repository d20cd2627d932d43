package seednodes

import (
	"context"
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

func nodeOf(name string, taints ...corev1.Taint) corev1.Node {
	return corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.NodeSpec{Taints: taints}}
}

// A node that is drained or lost for a while is a node: control planes are not rolled because of it.
func TestSeedsOfOneNode(t *testing.T) {
	ofControlPlane := corev1.Taint{Key: "node-role.kubernetes.io/control-plane", Effect: corev1.TaintEffectNoSchedule}
	for name, test := range map[string]struct {
		nodes []corev1.Node
		want  bool
	}{
		"none":                      {nil, true},
		"one":                       {[]corev1.Node{nodeOf("a")}, true},
		"two":                       {[]corev1.Node{nodeOf("a"), nodeOf("b")}, false},
		"one, and one for others":   {[]corev1.Node{nodeOf("a"), nodeOf("b", ofControlPlane)}, true},
		"one, and one that is lost": {[]corev1.Node{nodeOf("a"), nodeOf("b", unreachable()...)}, false},
		"one, and one that is drained": {
			[]corev1.Node{
				nodeOf("a"),
				nodeOf("b", corev1.Taint{Key: corev1.TaintNodeUnschedulable, Effect: corev1.TaintEffectNoSchedule}),
			}, false,
		},
		"one, and one that is the last choice": {
			[]corev1.Node{
				nodeOf("a"), nodeOf("b", corev1.Taint{Key: "costs", Effect: corev1.TaintEffectPreferNoSchedule}),
			}, false,
		},
	} {
		builder := fake.NewClientBuilder()
		for i := range test.nodes {
			builder.WithObjects(&test.nodes[i])
		}
		if got, err := AreSingle(t.Context(), builder.Build()); err != nil || got != test.want {
			t.Errorf("%s: single is %v, %v; want %v", name, got, err, test.want)
		}
	}
}

func unreachable() []corev1.Taint {
	return []corev1.Taint{
		{Key: corev1.TaintNodeUnreachable, Effect: corev1.TaintEffectNoSchedule},
		{Key: corev1.TaintNodeUnreachable, Effect: corev1.TaintEffectNoExecute},
	}
}

// pages lists nodes page by page, and tells how many lists there were.
type pages struct {
	client.Reader
	content [][]corev1.Node
	lists   int
	err     error
}

func (p *pages) List(_ context.Context, list client.ObjectList, opts ...client.ListOption) error {
	options := (&client.ListOptions{}).ApplyOptions(opts)
	if options.Limit == 0 || len(options.Continue) != p.lists {
		return errors.New("the nodes are not asked for page by page")
	}
	nodes := list.(*corev1.NodeList)
	nodes.Items = p.content[p.lists]
	p.lists++
	nodes.Continue = strings.Repeat("x", p.lists)
	if p.lists == len(p.content) {
		nodes.Continue = ""
	}
	return p.err
}

// Of a large seed no more is read than decides.
func TestLargeSeedsAreReadInPart(t *testing.T) {
	other := nodeOf("other", corev1.Taint{Key: "gpu", Effect: corev1.TaintEffectNoExecute})
	for name, test := range map[string]struct {
		content [][]corev1.Node
		lists   int
		want    bool
	}{
		"two on the first page": {[][]corev1.Node{{nodeOf("a"), nodeOf("b")}, {nodeOf("c")}}, 1, false},
		"one on each":           {[][]corev1.Node{{nodeOf("a"), other}, {nodeOf("c")}, {nodeOf("d")}}, 2, false},
		"one in all":            {[][]corev1.Node{{other, other}, {other, nodeOf("c")}}, 2, true},
	} {
		p := &pages{content: test.content}
		if got, err := AreSingle(t.Context(), p); err != nil || got != test.want || p.lists != test.lists {
			t.Errorf("%s: single is %v, %v, after %d lists; want %v after %d", name, got, err, p.lists, test.want,
				test.lists)
		}
	}
	broken := &pages{content: [][]corev1.Node{nil}, err: errors.New("broken")}
	_, err := AreSingle(t.Context(), broken)
	if err == nil || !strings.Contains(err.Error(), "nodes of the seed: broken") {
		t.Errorf("got %v", err)
	}
}
