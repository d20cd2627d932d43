// Package schedulerfilters holds what the cluster-autoscaler takes for schedulable against kube-scheduler's own
// filters, on random pods and nodes. It is a module of its own, as kube-scheduler is no dependency of the product.
//
// What is not compared, because pkg/clusterautoscaler/scheduling knows less or kube-scheduler is not asked there:
// devices, limits of volumes for each node, and volumes that are bound to a zone, which kube-scheduler reads from its
// own caches.
package schedulerfilters

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/yaml"

	"github.com/trellis-garden/trellis/pkg/clusterautoscaler/scheduling"
)

var (
	cases = flag.Int("cases", 100_000, "how many random pods are tried")
	seed  = flag.Uint64("seed", 1, "the first random number")
)

// least is the share of answers, in percent, that every filter must have of either kind: less would try nothing.
const least = 1

func TestFiltersAreThoseOfKubeScheduler(t *testing.T) {
	peer := newPeer(t)
	refused, answers := map[string]int{}, 0
	for n := range *cases {
		r := rand.New(rand.NewPCG(*seed, uint64(n)))
		c := randomCase(r)
		theirs := peer.ask(t, c)
		ours := ask(c)
		for _, node := range c.nodes {
			answers++
			refused[theirs[node.Name]]++
			if (theirs[node.Name] == "") != (ours[node.Name] == nil) {
				t.Fatalf("case %d of seed %d, node %s: kube-scheduler says %q, we %v\n%s", n, *seed, node.Name,
					theirs[node.Name], ours[node.Name], c)
			}
		}
	}
	for _, name := range append(names, "") {
		if *cases >= 1000 && refused[name]*100 < answers*least {
			t.Errorf("%q decided %d of %d times only", name, refused[name], answers)
		}
	}
	t.Logf("%d answers; refused by: %v", answers, refused)
}

// ask returns why the pod does not fit, by node.
func ask(c randomised) map[string]error {
	cluster := scheduling.New(scheduling.Facts{Namespaces: namespaces})
	for _, node := range c.nodes {
		cluster.Add(node, c.podsOn(node.Name)...)
	}
	result := map[string]error{}
	for _, node := range c.nodes {
		result[node.Name] = cluster.Fits(c.pod, node.Name)
	}
	return result
}

// randomised is one case: a pod that is to be scheduled to one of the nodes, which have pods.
type randomised struct {
	pod   *corev1.Pod
	nodes []*corev1.Node
	pods  []*corev1.Pod
}

func (c randomised) podsOn(node string) []*corev1.Pod {
	var pods []*corev1.Pod
	for _, pod := range c.pods {
		if pod.Spec.NodeName == node {
			pods = append(pods, pod)
		}
	}
	return pods
}

func (c randomised) String() string {
	text, err := yaml.Marshal(map[string]any{"pod": c.pod, "nodes": c.nodes, "pods": c.pods})
	return fmt.Sprintf("%s%v", text, err)
}

var namespaces = map[string]labels.Set{"x": {"team": "x"}, "y": {"team": "y", "tier": "one"}}

var ctx = context.Background()
