package clusterautoscaler

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr/testr"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/pflag"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	kubernetesfake "k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/record"

	"github.com/trellis-garden/trellis/pkg/clusterautoscaler/nodegroup"
)

var start = time.Date(2026, 1, 2, 3, 0, 0, 0, time.UTC)

func defaults(t *testing.T, arguments ...string) Options {
	t.Helper()
	var options Options
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	options.AddFlags(flags)
	if err := flags.Parse(arguments); err != nil {
		t.Fatal(err)
	}
	return options
}

// node is one with two cores.
func node(name string, changes ...func(*corev1.Node)) *corev1.Node {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelHostname: name}}}
	n.Status.Allocatable = corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("2"), corev1.ResourceMemory: resource.MustParse("4Gi"),
		corev1.ResourcePods: resource.MustParse("110"),
	}
	n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	for _, change := range changes {
		change(n)
	}
	return n
}

func withTaint(key string) func(*corev1.Node) {
	return func(n *corev1.Node) {
		n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: key, Effect: corev1.TaintEffectNoSchedule})
	}
}

func unready(n *corev1.Node) { n.Status.Conditions[0].Status = corev1.ConditionFalse }

// pod belongs to a ReplicaSet and is pending unless it has a node.
func pod(name, cpu, on string, changes ...func(*corev1.Pod)) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: "default", Name: name, CreationTimestamp: metav1.NewTime(start),
		Labels:          map[string]string{"app": name},
		OwnerReferences: []metav1.OwnerReference{{Kind: "ReplicaSet", Name: "web", Controller: new(true)}},
	}}
	p.Spec.NodeName = on
	p.Spec.Containers = []corev1.Container{
		{
			Resources: corev1.ResourceRequirements{
				Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)},
			},
		},
	}
	if on == "" {
		p.Status.Phase = corev1.PodPending
		p.Status.Conditions = []corev1.PodCondition{
			{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable},
		}
	}
	for _, change := range changes {
		change(p)
	}
	return p
}

func owner(kind string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.OwnerReferences[0].Kind = kind }
}
func annotated(key, value string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Annotations = map[string]string{key: value} }
}

// group has a machine for each node, and a template of two cores.
func group(name string, minimum, maximum, target int, nodes ...string) *nodegroup.Group {
	g := &nodegroup.Group{
		Limits: nodegroup.Limits{Name: name, Minimum: minimum, Maximum: maximum}, Pool: "pool", Target: target,
		Template: node(""),
	}
	g.Options = nodegroup.Options{
		ScaleDownUtilizationThreshold: 0.5, ScaleDownGPUUtilizationThreshold: 0.5, ScaleDownUnneededTime: time.Minute,
		ScaleDownUnreadyTime: 10 * time.Minute,
		MaxNodeProvisionTime: 20 * time.Minute,
	}
	for _, n := range nodes {
		g.Machines = append(g.Machines, nodegroup.Machine{Name: "machine-" + n, Node: n, Created: start})
	}
	return g
}

// fleet records what is asked for, and does it.
type fleet struct {
	groups []*nodegroup.Group
	calls  []string
	// err is that of growing, deletion that of removing machines.
	err, deletion error
}

func (f *fleet) List(context.Context) ([]*nodegroup.Group, error) {
	var copies []*nodegroup.Group
	for _, g := range f.groups {
		c := *g
		c.Machines = slices.Clone(g.Machines)
		copies = append(copies, &c)
	}
	return copies, nil
}

func (f *fleet) find(name string) *nodegroup.Group {
	return f.groups[slices.IndexFunc(f.groups, func(g *nodegroup.Group) bool { return g.Name == name })]
}

func (f *fleet) Increase(_ context.Context, g *nodegroup.Group, delta int) error {
	f.calls = append(f.calls, fmt.Sprintf("%s+%d", g.Name, delta))
	if f.err == nil {
		f.find(g.Name).Target += delta
	}
	return f.err
}

func (f *fleet) Delete(_ context.Context, g *nodegroup.Group, machines ...string) error {
	f.calls = append(f.calls, fmt.Sprintf("%s-%s", g.Name, strings.Join(machines, ",")))
	if f.deletion != nil {
		return f.deletion
	}
	found := f.find(g.Name)
	found.Target -= len(machines)
	found.Machines = slices.DeleteFunc(found.Machines,
		func(m nodegroup.Machine) bool { return slices.Contains(machines, m.Name) })
	return nil
}

// bench is an autoscaler with a clock that stands still between steps.
type bench struct {
	*Autoscaler
	t     *testing.T
	shoot Snapshot
	fleet *fleet
	time  time.Time
	ended chan error
}

func newBench(t *testing.T, shoot Snapshot, groups []*nodegroup.Group, arguments ...string) *bench {
	t.Helper()
	own := &fleet{}
	for _, g := range groups {
		copied := *g
		own.groups = append(own.groups, &copied)
	}
	b := &bench{t: t, shoot: shoot, fleet: own, time: start, ended: make(chan error)}
	a, err := newAutoscaler(testr.New(t), defaults(t, arguments...), b.fleet, kubernetesfake.NewClientset(),
		record.NewFakeRecorder(100), newMetrics(prometheus.NewRegistry()))
	if err != nil {
		t.Fatal(err)
	}
	a.look = func() (*Snapshot, error) {
		snapshot := b.shoot
		snapshot.Now = b.time
		return &snapshot, nil
	}
	a.now = func() time.Time { return b.time }
	a.drain = func(context.Context, Removal) error { return <-b.ended }
	b.Autoscaler = a
	return b
}

// step looks once after some time and returns what was asked for meanwhile.
func (b *bench) step(after time.Duration) string {
	b.t.Helper()
	b.time = b.time.Add(after)
	b.fleet.calls = nil
	_ = b.RunOnce(b.t.Context())
	return strings.Join(b.fleet.calls, " ")
}

func (b *bench) event() string {
	select {
	case event := <-b.events.(*record.FakeRecorder).Events:
		return event
	default:
		return ""
	}
}

func TestScaleUp(t *testing.T) {
	big := group("big", 0, 5, 0)
	big.Template.Status.Allocatable[corev1.ResourceCPU] = resource.MustParse("16")
	broken := group("pool", 0, 5, 1)
	broken.Machines = []nodegroup.Machine{{Name: "m", Created: start, Problem: "no capacity"}}
	unknown := group("unknown", 0, 5, 0)
	unknown.Template = nil
	later := func(p *corev1.Pod) { p.CreationTimestamp = metav1.NewTime(start.Add(time.Minute)) }
	for name, test := range map[string]struct {
		nodes     []*corev1.Node
		pods      []*corev1.Pod
		groups    []*nodegroup.Group
		arguments []string
		want      string
	}{
		"from zero": {
			nil, []*corev1.Pod{pod("a", "1", "")}, []*nodegroup.Group{group("pool", 0, 5, 0)}, nil, "pool+1",
		},
		"as few as needed": {
			nil, []*corev1.Pod{pod("a", "1", ""), pod("b", "1500m", ""), pod("c", "1", ""), pod("d", "500m", "")},
			[]*nodegroup.Group{group("pool", 0, 5, 0)}, nil, "pool+2",
		},
		"up to the maximum": {
			nil, []*corev1.Pod{pod("a", "2", ""), pod("b", "2", ""), pod("c", "2", "")},
			[]*nodegroup.Group{group("pool", 0, 2, 0)}, nil, "pool+2",
		},
		"room on a node": {
			[]*corev1.Node{node("n")}, []*corev1.Pod{pod("a", "1", "")},
			[]*nodegroup.Group{group("pool", 0, 5, 1, "n")}, nil, "",
		},
		"node is full": {
			[]*corev1.Node{node("n")}, []*corev1.Pod{pod("x", "2", "n"), pod("a", "1", "")},
			[]*nodegroup.Group{group("pool", 0, 5, 1, "n")}, nil, "pool+1",
		},
		"machine on its way": {
			nil, []*corev1.Pod{pod("a", "1", "")}, []*nodegroup.Group{group("pool", 0, 5, 1)}, nil, "",
		},
		"node starting": {
			[]*corev1.Node{node("n", withTaint("starting"))}, []*corev1.Pod{pod("a", "1", "")},
			[]*nodegroup.Group{group("pool", 0, 5, 1, "n")}, []string{"--startup-taint=starting"}, "",
		},
		"node being removed": {
			[]*corev1.Node{node("n", withTaint(TaintToBeDeleted))}, []*corev1.Pod{pod("a", "1", "")},
			[]*nodegroup.Group{group("pool", 0, 5, 1, "n")}, nil, "pool+1",
		},
		"too big for any": {
			nil, []*corev1.Pod{pod("a", "3", "")}, []*nodegroup.Group{group("pool", 0, 5, 0)}, nil, "",
		},
		"only the big helps": {
			nil, []*corev1.Pod{pod("a", "3", "")}, []*nodegroup.Group{group("pool", 0, 5, 0), big}, nil, "big+1",
		},
		"least waste": {
			nil, []*corev1.Pod{pod("a", "1", "")}, []*nodegroup.Group{big, group("pool", 0, 5, 0)}, nil, "pool+1",
		},
		"most pods": {
			nil, []*corev1.Pod{pod("a", "1", ""), pod("b", "3", "")}, []*nodegroup.Group{group("pool", 0, 5, 0), big},
			[]string{"--expander=most-pods"}, "big+1",
		},
		"least nodes": {
			nil, []*corev1.Pod{pod("a", "2", ""), pod("b", "2", "")}, []*nodegroup.Group{group("pool", 0, 5, 0), big},
			[]string{"--expander=least-nodes"}, "big+1",
		},
		"priority": {
			nil, []*corev1.Pod{pod("a", "1", "")}, []*nodegroup.Group{group("pool", 0, 5, 0), big},
			[]string{"--expander=priority,least-waste"}, "big+1",
		},
		"over the zones": {
			nil, []*corev1.Pod{pod("a", "2", ""), pod("b", "2", ""), pod("c", "2", "")},
			[]*nodegroup.Group{group("pool-z1", 0, 5, 0), group("pool-z2", 0, 5, 0)}, []string{"--expander=most-pods"},
			"+1 +2",
		},
		"infrastructure empty": {nil, []*corev1.Pod{pod("a", "1", "")}, []*nodegroup.Group{broken}, nil, "pool-m"},
		"nothing known":        {nil, []*corev1.Pod{pod("a", "1", "")}, []*nodegroup.Group{unknown}, nil, ""},
		"too young": {
			nil, []*corev1.Pod{pod("a", "1", "", later)}, []*nodegroup.Group{group("pool", 0, 5, 0)},
			[]string{"--new-pod-scale-up-delay=2m"}, "",
		},
		"expendable": {
			nil, []*corev1.Pod{pod("a", "1", "", func(p *corev1.Pod) { p.Spec.Priority = new(int32(-11)) })},
			[]*nodegroup.Group{group("pool", 0, 5, 0)}, nil, "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, Snapshot{Nodes: test.nodes, Pods: test.pods}, test.groups, test.arguments...)
			b.shoot.Priorities, _ = ParsePriorities("10: [pool]\n20: ['^b.g']\n")
			got := b.step(2 * time.Minute)
			if test.want == "+1 +2" {
				calls := slices.Sorted(slices.Values(strings.Fields(got)))
				if len(calls) != 2 || b.fleet.groups[0].Target+b.fleet.groups[1].Target != 3 {
					t.Errorf("got %q, want three machines over both zones", got)
				}
				return
			}
			if got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

func TestDaemonSetsNeedTheirPartOfNewNodes(t *testing.T) {
	daemon := &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "agent"}}
	daemon.Spec.Template.Spec = pod("agent", "500m", "").Spec
	b := newBench(t, Snapshot{
		Pods: []*corev1.Pod{pod("a", "1500m", ""), pod("b", "500m", "")}, DaemonSets: []*appsv1.DaemonSet{daemon},
	}, []*nodegroup.Group{
		group("pool", 0, 5, 0),
	})
	if got := b.step(0); got != "pool+2" {
		t.Errorf("got %q, want two nodes", got)
	}
}

func TestEventsTellWhy(t *testing.T) {
	b := newBench(t, Snapshot{Pods: []*corev1.Pod{pod("a", "3", "")}},
		[]*nodegroup.Group{group("full", 0, 1, 1), group("pool", 0, 5, 0)})
	b.step(0)
	got := b.event()
	for _, want := range []string{
		"NotTriggerScaleUp", "full: it has its maximum of 1", "pool: 3 of cpu is wanted, 2 is free",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("got %q, want %q in it", got, want)
		}
	}
	b = newBench(t, Snapshot{Pods: []*corev1.Pod{pod("a", "1", "")}}, []*nodegroup.Group{group("pool", 0, 5, 0)})
	b.step(0)
	if got := b.event(); !strings.Contains(got, "TriggeredScaleUp pod triggered scale-up: pool 0->1 (max: 5)") {
		t.Errorf("got %q", got)
	}
}

func TestGroupsThatFailPause(t *testing.T) {
	b := newBench(t, Snapshot{Pods: []*corev1.Pod{pod("a", "1", "")}}, []*nodegroup.Group{group("pool", 0, 5, 0)})
	b.fleet.err = errors.New("quota")
	for _, step := range []struct {
		after time.Duration
		want  string
	}{
		{0, "pool+1"}, {4 * time.Minute, ""}, {time.Minute, "pool+1"}, // 5 min, then 10 min
		// at most 30 min
		{9 * time.Minute, ""}, {time.Minute, "pool+1"}, {20 * time.Minute, "pool+1"}, {29 * time.Minute, ""},
		{time.Minute, "pool+1"},
		{4 * time.Hour, "pool+1"}, {5 * time.Minute, "pool+1"}, // from the first again
	} {
		if got := b.step(step.after); got != step.want {
			t.Errorf("at %s: got %q, want %q", b.time.Sub(start), got, step.want)
		}
	}
}

func TestMachinesThatDoNotComeUpAreReplacedElsewhere(t *testing.T) {
	slow := group("slow", 0, 2, 1)
	slow.Machines = []nodegroup.Machine{{Name: "m", Created: start}}
	other := group("other", 0, 2, 0)
	other.Template.Status.Allocatable[corev1.ResourceCPU] = resource.MustParse("8")
	b := newBench(t, Snapshot{Pods: []*corev1.Pod{pod("a", "1", "")}}, []*nodegroup.Group{slow, other})
	if got := b.step(19 * time.Minute); got != "" {
		t.Errorf("got %q while the machine may come up", got)
	}
	if got := b.step(2 * time.Minute); got != "slow-m other+1" {
		t.Errorf("got %q, want the machine removed and another group grown", got)
	}
}

func TestMachinesThatReplaceOthersAreKept(t *testing.T) {
	rolling := group("pool", 1, 3, 2, "a", "b")
	rolling.Rolling = true
	rolling.Machines = append(rolling.Machines, nodegroup.Machine{Name: "m", Created: start, Problem: "no capacity"})
	b := newBench(t, Snapshot{
		Nodes: []*corev1.Node{node("a"), node("b")}, Pods: []*corev1.Pod{pod("x", "2", "a"), pod("y", "2", "b")},
	}, []*nodegroup.Group{
		rolling,
	})
	if got := b.step(time.Hour); got != "" {
		t.Errorf("got %q, want no machine less: a node with pods would go", got)
	}
	b.fleet.groups[0].Rolling = false
	if got := b.step(time.Hour); got != "pool-m" {
		t.Errorf("got %q, want the machine removed", got)
	}
}

func TestNodeWhoseMachineStaysIsUsedAgain(t *testing.T) {
	b := newBench(t, Snapshot{Nodes: []*corev1.Node{node("a"), node("b")}},
		[]*nodegroup.Group{group("pool", 1, 3, 2, "a", "b")})
	var freed []string
	b.untaint = func(_ context.Context, node string) error {
		freed = append(freed, node)
		return nil
	}
	b.fleet.deletion = errors.New("below its minimum")
	b.step(0)
	if b.step(time.Minute); len(b.ongoing()) != 1 {
		t.Fatalf("got %v, want a node removed", b.ongoing())
	}
	b.ended <- nil
	b.awaitEnd("pool-machine-a")
	if !slices.Equal(freed, []string{"a"}) {
		t.Errorf("got %v, want pods to come to node a again", freed)
	}
}

func TestUnneeded(t *testing.T) {
	gpu := func(used string) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			p.Spec.Containers[0].Resources.Requests[nodegroup.ResourceGPU] = resource.MustParse(used)
		}
	}
	withGPU := func(n *corev1.Node) { n.Status.Allocatable[nodegroup.ResourceGPU] = resource.MustParse("4") }
	budget := func(allowed int32) []*policyv1.PodDisruptionBudget {
		b := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "pdb"}}
		b.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "a"}}
		b.Status.DisruptionsAllowed = allowed
		return []*policyv1.PodDisruptionBudget{b}
	}
	busy := pod("x", "1", "other")
	for name, test := range map[string]struct {
		node      *corev1.Node
		pods      []*corev1.Pod
		budgets   []*policyv1.PodDisruptionBudget
		arguments []string
		kept      string
	}{
		"empty":   {node: node("n")},
		"unready": {node: node("n", unready)},
		"movable": {node: node("n"), pods: []*corev1.Pod{pod("a", "500m", "n")}},
		"in use": {
			node: node("n"), pods: []*corev1.Pod{pod("a", "1", "n")},
			kept: "50 % of it is requested, the threshold is 50 %",
		},
		"no room elsewhere": {
			node: node("n"), pods: []*corev1.Pod{pod("a", "500m", "n"), pod("y", "800m", "other")},
			kept: "default/a has room nowhere else",
		},
		"daemons": {
			node: node("n"), pods: []*corev1.Pod{pod("a", "1", "n", owner("DaemonSet"))}, kept: "50 %",
		},
		"daemons ignored": {
			node: node("n"), pods: []*corev1.Pod{pod("a", "1", "n", owner("DaemonSet"))},
			arguments: []string{"--ignore-daemonsets-utilization"},
		},
		"annotated node": {
			node: node("n", func(n *corev1.Node) {
				n.Annotations = map[string]string{AnnotationScaleDownDisabled: "true"}
			}), kept: AnnotationScaleDownDisabled,
		},
		"annotated pod": {
			node: node("n"), pods: []*corev1.Pod{pod("a", "100m", "n", annotated(AnnotationSafeToEvict, "false"))},
			kept: AnnotationSafeToEvict,
		},
		"nobody's pod": {
			node: node("n"), pods: []*corev1.Pod{
				pod("a", "100m", "n", func(p *corev1.Pod) { p.OwnerReferences = nil }),
			}, kept: "no controller",
		},
		"nobody's safe pod": {
			node: node("n"), pods: []*corev1.Pod{
				pod("a", "100m", "n", annotated(AnnotationSafeToEvict, "true"),
					func(p *corev1.Pod) { p.OwnerReferences = nil }),
			},
		},
		"budget": {
			node: node("n"), pods: []*corev1.Pod{pod("a", "100m", "n")}, budgets: budget(0),
			kept: "PodDisruptionBudget pdb",
		},
		"budget allows": {node: node("n"), pods: []*corev1.Pod{pod("a", "100m", "n")}, budgets: budget(1)},
		"ended pods": {
			node: node("n"), pods: []*corev1.Pod{
				pod("a", "2", "n", func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded }),
			},
		},
		"GPUs count": {
			node: node("n", withGPU), pods: []*corev1.Pod{pod("a", "0", "n", gpu("3"))},
			kept: "75 % of it is requested",
		},
		"only GPUs count": {
			node: node("n", withGPU), pods: []*corev1.Pod{pod("a", "1900m", "n", owner("DaemonSet"))},
		},
		"minimum of a group": {
			node: node("z", func(n *corev1.Node) { n.Name = "single" }), kept: "single has its minimum of 1",
		},
	} {
		t.Run(name, func(t *testing.T) {
			other := node("other", func(n *corev1.Node) {
				n.Annotations = map[string]string{AnnotationScaleDownDisabled: "true"}
			})
			s := Snapshot{
				Now: start, Nodes: []*corev1.Node{test.node, other}, Pods: append(test.pods, busy),
				Budgets: test.budgets,
				Groups:  []*nodegroup.Group{group("pool", 0, 5, 2, "n", "other"), group("single", 1, 5, 1, "single")},
			}
			options := defaults(t, test.arguments...)
			removals, kept := s.unneeded(&options, s.world(&options))
			why := kept[test.node.Name]
			if test.kept == "" && (len(removals) != 1 || removals[0].Machine != "machine-n") {
				t.Errorf("got %v, %q; want the node to be unneeded", removals, why)
			}
			if test.kept != "" && !strings.Contains(why, test.kept) {
				t.Errorf("got %q, want %q", why, test.kept)
			}
		})
	}
}

// Three nodes with pods of a core each: one can go, and its pod makes the next one needed.
func TestMovedPodsCount(t *testing.T) {
	s := Snapshot{
		Now: start, Nodes: []*corev1.Node{node("a"), node("b"), node("c")},
		Pods:   []*corev1.Pod{pod("a", "900m", "a"), pod("b", "900m", "b"), pod("c", "900m", "c")},
		Groups: []*nodegroup.Group{group("pool", 0, 5, 3, "a", "b", "c")},
	}
	options := defaults(t)
	removals, _ := s.unneeded(&options, s.world(&options))
	if len(removals) != 1 {
		t.Errorf("got %d removals, want one: two nodes have room for the three pods", len(removals))
	}
}

func TestScaleDown(t *testing.T) {
	shoot := Snapshot{
		Nodes: []*corev1.Node{node("a"), node("b"), node("c", unready)},
		Pods:  []*corev1.Pod{pod("x", "1500m", "a"), pod("y", "100m", "b")},
	}
	b := newBench(t, shoot, []*nodegroup.Group{group("pool", 1, 5, 3, "a", "b", "c")})
	b.step(0)
	if b.step(59 * time.Second); len(b.ongoing()) != 0 {
		t.Error("too early")
	}
	if b.step(time.Second); len(b.ongoing()) != 1 || b.ongoing()[0].Node.Name != "b" {
		t.Fatalf("got %v, want b removed; the unready node has more time", b.ongoing())
	}
	b.ended <- nil
	b.awaitEnd("pool-machine-b")
	b.shoot.Nodes = []*corev1.Node{shoot.Nodes[0], shoot.Nodes[2]}
	b.shoot.Pods = []*corev1.Pod{shoot.Pods[0]}
	if b.step(10 * time.Minute); len(b.ongoing()) != 1 || b.ongoing()[0].Node.Name != "c" {
		t.Fatalf("got %v, want the unready node removed", b.ongoing())
	}
	b.ended <- errors.New("a pod does not go")
	b.awaitEnd("")
	if b.step(2 * time.Minute); len(b.ongoing()) != 0 {
		t.Error("failures are followed by a pause")
	}
	if b.step(2 * time.Minute); len(b.ongoing()) != 1 {
		t.Error("the pause has ended")
	}
	b.ended <- nil
}

// awaitEnd waits until no removal is under way, and compares what was asked for.
func (b *bench) awaitEnd(want string) {
	b.t.Helper()
	err := wait.PollUntilContextTimeout(b.t.Context(), time.Millisecond, 10*time.Second, true,
		func(context.Context) (bool, error) {
			return len(b.ongoing()) == 0, nil
		})
	if err != nil {
		b.t.Fatal("the removal does not end")
	}
	if got := strings.Join(b.fleet.calls, " "); got != want {
		b.t.Errorf("got %q, want %q", got, want)
	}
}

func TestNothingIsRemovedSoonAfterGrowing(t *testing.T) {
	b := newBench(t, Snapshot{Nodes: []*corev1.Node{node("a"), node("b")},
		Pods: []*corev1.Pod{pod("big", "2", "", func(p *corev1.Pod) {
			p.Spec.NodeSelector = map[string]string{corev1.LabelTopologyZone: "z"}
		})}}, []*nodegroup.Group{group("pool", 0, 5, 2, "a", "b"), group("zone", 0, 1, 0)},
		"--scale-down-delay-after-add=10m")
	b.fleet.groups[1].Template.Labels = map[string]string{corev1.LabelTopologyZone: "z"}
	if got := b.step(0); got != "zone+1" {
		t.Fatalf("got %q", got)
	}
	if b.step(9 * time.Minute); len(b.ongoing()) != 0 {
		t.Error("the delay has not passed")
	}
	if b.step(time.Minute); len(b.ongoing()) != 2 {
		t.Errorf("got %v, want both empty nodes removed", b.ongoing())
	}
	b.ended <- nil
	b.ended <- nil
}

func TestRemovalsAtATime(t *testing.T) {
	var removals []Removal
	since := unneededSince{}
	for i := range 6 {
		removal := Removal{Node: node(fmt.Sprint("n", i)), Group: group("pool", 0, 9, 6)}
		if i < 3 {
			removal.Pods = []*corev1.Pod{pod("a", "1", "n")}
		}
		removals = append(removals, removal)
	}
	since.update(removals, start)
	names := func(list []Removal) string {
		var all []string
		for _, removal := range list {
			all = append(all, removal.Node.Name)
		}
		return strings.Join(all, " ")
	}
	options := defaults(t, "--max-scale-down-parallelism=4", "--max-drain-parallelism=2")
	if got := names(since.due(&options, removals, nil, start.Add(time.Minute))); got != "n0 n1 n3 n4" {
		t.Errorf("got %s", got)
	}
	if got := names(since.due(&options, removals[2:], removals[:2], start.Add(time.Minute))); got != "n3 n4" {
		t.Errorf("with two under way: got %s", got)
	}
	since.update(removals[1:], start.Add(time.Minute))
	if _, found := since["n0"]; found {
		t.Error("a node that is needed again starts anew")
	}
}
