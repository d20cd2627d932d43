package schedulerfilters

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/informers"
	kubernetesfake "k8s.io/client-go/kubernetes/fake"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/backend/cache"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
	"k8s.io/kubernetes/pkg/scheduler/metrics"
)

// names are kube-scheduler's filters that decide by what the autoscaler knows, in the order in which they are asked.
var names = []string{
	"NodeUnschedulable", "TaintToleration", "NodeAffinity", "NodePorts", "NodeResourcesFit", "PodTopologySpread",
	"InterPodAffinity",
}

// peer asks kube-scheduler's filters.
type peer struct {
	lister  *lister
	filters []fwk.FilterPlugin
}

// lister shows the nodes and pods of the case that is tried.
type lister struct{ *cache.Snapshot }

func newPeer(t *testing.T) *peer {
	t.Helper()
	metrics.Register()
	var objects []runtime.Object
	for name, labels := range namespaces {
		objects = append(objects, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}})
	}
	client := kubernetesfake.NewClientset(objects...)
	factory := informers.NewSharedInformerFactory(client, 0)
	p := &peer{lister: &lister{cache.NewEmptySnapshot()}}
	handle, err := frameworkruntime.NewFramework(t.Context(), nil, nil,
		frameworkruntime.WithSnapshotSharedLister(p.lister),
		frameworkruntime.WithInformerFactory(factory), frameworkruntime.WithClientSet(client))
	if err != nil {
		t.Fatal(err)
	}
	arguments := map[string]runtime.Object{
		"NodeAffinity": &config.NodeAffinityArgs{}, "InterPodAffinity": &config.InterPodAffinityArgs{},
		"PodTopologySpread": &config.PodTopologySpreadArgs{DefaultingType: config.ListDefaulting},
		"NodeResourcesFit": &config.NodeResourcesFitArgs{ScoringStrategy: &config.ScoringStrategy{
			Type: config.LeastAllocated, Resources: []config.ResourceSpec{{Name: "cpu", Weight: 1}},
		}},
	}
	registry := plugins.NewInTreeRegistry()
	for _, name := range names {
		plugin, err := registry[name](t.Context(), arguments[name], handle)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		p.filters = append(p.filters, plugin.(fwk.FilterPlugin))
	}
	factory.Start(t.Context().Done())
	factory.WaitForCacheSync(t.Context().Done())
	return p
}

// ask returns, by node, the first filter that refuses the pod; empty for none.
func (p *peer) ask(t *testing.T, c randomised) map[string]string {
	t.Helper()
	p.lister.Snapshot = cache.NewSnapshot(c.pods, c.nodes)
	infos, err := p.lister.NodeInfos().List()
	if err != nil {
		t.Fatal(err)
	}
	result := map[string]string{}
	for _, filter := range p.filters {
		p.askOne(t, filter, c, infos, result)
	}
	return result
}

func (p *peer) askOne(t *testing.T, filter fwk.FilterPlugin, c randomised, infos []fwk.NodeInfo,
	result map[string]string) {
	t.Helper()
	state := framework.NewCycleState()
	only := (*fwk.PreFilterResult)(nil)
	if pre, ok := filter.(fwk.PreFilterPlugin); ok {
		among, status := pre.PreFilter(ctx, state, c.pod, infos)
		switch {
		case status.IsSkip():
			return
		case status.IsRejected():
			only = &fwk.PreFilterResult{NodeNames: sets.New[string]()}
		case !status.IsSuccess():
			t.Fatalf("%s: %v\n%s", filter.Name(), status.AsError(), c)
		default:
			only = among
		}
	}
	for _, info := range infos {
		name := info.Node().Name
		if result[name] != "" {
			continue
		}
		among := only == nil || only.AllNodes() || only.NodeNames.Has(name)
		if !among || !filter.Filter(ctx, state, c.pod, info).IsSuccess() {
			result[name] = filter.Name()
		}
	}
}
