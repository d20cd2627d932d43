package capacity

import (
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	clusterv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/cluster/v1alpha1"
)

func resources(pairs ...string) corev1.ResourceList {
	list := corev1.ResourceList{}
	for i := 0; i < len(pairs); i += 2 {
		list[corev1.ResourceName(pairs[i])] = resource.MustParse(pairs[i+1])
	}
	return list
}

func nodeWith(name string, allocatable corev1.ResourceList, change ...func(*corev1.Node)) *corev1.Node {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: corev1.NodeStatus{
		Allocatable: allocatable, Conditions: []corev1.NodeCondition{
			{Type: corev1.NodeReady, Status: corev1.ConditionTrue},
		},
	}}
	for _, f := range change {
		f(n)
	}
	return n
}

func podOn(node, name string, requests corev1.ResourceList) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name)}, Spec: corev1.PodSpec{
		NodeName: node, Containers: []corev1.Container{{Resources: corev1.ResourceRequirements{Requests: requests}}},
	}}
}

func accountOf(objects ...any) *Account {
	l := NewAccount(DefaultLimits())
	for _, o := range objects {
		switch typed := o.(type) {
		case *corev1.Node:
			l.SetNode(typed)
		case *corev1.Pod:
			l.SetPod(typed)
		}
	}
	return l
}

func amountsOf(list corev1.ResourceList) string {
	a := amounts{}
	for name, quantity := range list {
		a[string(name)] = valueOf(name, quantity)
	}
	return a.key()
}

func TestReport(t *testing.T) {
	notReady := func(n *corev1.Node) { n.Status.Conditions = nil }
	cordoned := func(n *corev1.Node) { n.Spec.Unschedulable = true }
	has := resources("cpu", "4", "memory", "8Gi", "pods", "10")
	half := resources("cpu", "500m", "memory", "1Gi")
	done := podOn("a", "done", half)
	done.Status.Phase = corev1.PodSucceeded
	l := accountOf(
		podOn("a", "early", half), nodeWith("a", has), nodeWith("b", has), nodeWith("down", has, notReady),
		nodeWith("off", has, cordoned),
		podOn("a", "p1", half), podOn("b", "p2", resources("cpu", "3")), podOn("down", "p3", half),
		podOn("off", "p4", half), podOn("", "wait", half), done,
	)
	r := l.Report()
	if r.Nodes.TotalNum != 4 || r.Nodes.ReadyNum != 3 {
		t.Errorf("nodes: %+v", r.Nodes)
	}
	for what, check := range map[string]struct {
		got  corev1.ResourceList
		want string
	}{
		"ready nodes that take pods":  {r.Resources.Allocatable, "cpu=8000;memory=17179869184;pods=20;"},
		"pods on them":                {r.Resources.Allocated, "cpu=4000;memory=2147483648;pods=3;"},
		"pods that wait":              {r.Resources.Allocating, "cpu=500;memory=1073741824;pods=1;"},
		"what is left":                {r.Resources.Available, "cpu=3500;memory=13958643712;pods=16;"},
		"the node with the most room": {r.Resources.Contiguous, "cpu=3000;memory=6442450944;pods=8;"},
	} {
		if got := amountsOf(check.got); got != check.want {
			t.Errorf("%s: got %s, want %s", what, got, check.want)
		}
	}
	if len(r.Resources.NodeClasses) != 2 || r.Resources.NodeClasses[0].Count != 1 {
		t.Errorf("classes: %+v", r.Resources.NodeClasses)
	}
}

// However objects come and go, the account knows what one that sees only the end knows.
func TestAccountMatchesRecount(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	l := NewAccount(DefaultLimits())
	nodes, livePods := map[string]*corev1.Node{}, map[string]*corev1.Pod{}
	for range 20_000 {
		name := fmt.Sprintf("n%d", random.IntN(20))
		pod := fmt.Sprintf("p%d", random.IntN(200))
		switch random.IntN(5) {
		case 0:
			nodes[name] = nodeWith(name, resources("cpu", fmt.Sprint(random.IntN(8)), "pods", "110"))
			l.SetNode(nodes[name])
		case 1:
			delete(nodes, name)
			l.DeleteNode(name)
		case 2, 3:
			if random.IntN(4) == 0 {
				name = ""
			}
			livePods[pod] = podOn(name, pod, resources("cpu", fmt.Sprintf("%dm", random.IntN(3)*100)))
			l.SetPod(livePods[pod])
		case 4:
			delete(livePods, pod)
			l.DeletePod(podOn("", pod, nil))
		}
	}
	fresh := NewAccount(DefaultLimits())
	for _, n := range nodes {
		fresh.SetNode(n)
	}
	for _, p := range livePods {
		fresh.SetPod(p)
	}
	if diff := cmp.Diff(fresh.Report().Resources, l.Report().Resources); diff != "" {
		t.Errorf("-seen at the end +followed: %s", diff)
	}
	round := l.BeginList()
	l.EndNodes(round)
	l.EndPods(round)
	if len(l.nodes)+len(l.pods)+len(l.requests)+len(l.pending) != 0 {
		t.Errorf("left: %d nodes, %d pods, %d requests, pending %v", len(l.nodes), len(l.pods), len(l.requests),
			l.pending)
	}
}

func TestImplausibleNodesAreLeftOut(t *testing.T) {
	good := nodeWith("good", resources("cpu", "4", "pods", "10"))
	for name, lie := range map[string]corev1.ResourceList{
		"negative": {"cpu": *resource.NewQuantity(-4, resource.DecimalSI)},
		"huge":     resources("memory", "1Ei"), "more than a number": resources("cpu", "9999999999999999999999"),
		"cores": resources("cpu", "20000"), "pods": resources("pods", "70000"),
	} {
		r := accountOf(good, nodeWith("liar", lie)).Report()
		if len(r.Problems) != 1 || !strings.Contains(r.Problems[0], "node liar claims") {
			t.Errorf("%s: problems %q", name, r.Problems)
		}
		if got := amountsOf(r.Resources.Available); got != "cpu=4000;pods=10;" {
			t.Errorf("%s: available %s", name, got)
		}
		status := &clusterv1alpha1.ClusterStatus{}
		if reason, _ := r.Describe(nil, status); reason != clusterv1alpha1.ReasonImplausible {
			t.Errorf("%s: reason %s", name, reason)
		}
	}
	many := accountOf(good)
	for i := range 100 {
		many.SetPod(podOn("", fmt.Sprint(i), resources("memory", "8Ei")))
	}
	if got := many.Report().Resources.Allocating["memory"]; got.Sign() <= 0 {
		t.Errorf("sums don't overflow: %s", got.String())
	}
}

func TestOverflow(t *testing.T) {
	l := NewAccount(Limits{Nodes: 2, Pods: 2})
	for i := range 2 {
		l.SetNode(nodeWith(fmt.Sprint(i), nil))
		l.SetPod(podOn("0", fmt.Sprint(i), nil))
	}
	if l.Overflow() {
		t.Error("what fits is no overflow")
	}
	l.SetPod(podOn("0", "2", nil))
	if !l.Overflow() {
		t.Error("one pod too many")
	}
	l.Reset()
	l.SetPod(podOn("a", "1", nil))
	l.SetPod(podOn("b", "2", nil))
	l.SetNode(nodeWith("c", nil))
	if !l.Overflow() {
		t.Error("nodes that only pods name count too")
	}
}

func TestClassesPromiseNothingThatIsNotThere(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	for range 50 {
		var nodes []room
		for i := range random.IntN(400) {
			nodes = append(nodes, room{
				free: amounts{cpu: random.Int64N(64_000), memory: random.Int64N(1 << 38), pods: random.Int64N(110)},
				labels: map[string]string{
					"host": fmt.Sprint(i), "zone": fmt.Sprint(i % 3), "type": fmt.Sprint(random.IntN(i + 1)),
				},
				taints: []corev1.Taint{{Key: fmt.Sprint(i % 2), Effect: corev1.TaintEffectNoSchedule}},
			})
		}
		list := classes(nodes)
		if len(list) > clusterv1alpha1.MaxNodeClasses {
			t.Fatalf("%d classes", len(list))
		}
		for _, request := range []amounts{{cpu: 1000}, {memory: 4 << 30}, {cpu: 3700, memory: 9 << 30, pods: 1}} {
			fits := func(free amounts) (n int64) {
				n = math.MaxInt64
				for name, value := range request {
					n = min(n, free[name]/value)
				}
				return n
			}
			var there, promised int64
			for _, n := range nodes {
				there += fits(n.free)
			}
			for _, c := range list {
				promised += int64(c.Count) * fits(requestedAll(c.Free))
			}
			if promised > there {
				t.Fatalf("%d promised, %d there", promised, there)
			}
			if len(nodes) <= clusterv1alpha1.MaxNodeClasses && promised != there {
				t.Fatalf("few nodes are told exactly: %d of %d", promised, there)
			}
		}
	}
}

func requestedAll(list corev1.ResourceList) amounts {
	a := amounts{}
	for name, quantity := range list {
		a[string(name)] = valueOf(name, quantity)
	}
	return a
}

func TestEqualNodesAreOneClass(t *testing.T) {
	l := NewAccount(DefaultLimits())
	for i := range 1000 {
		l.SetNode(nodeWith(fmt.Sprint("n", i), resources("cpu", "4", "pods", "110"), func(n *corev1.Node) {
			n.Labels = map[string]string{"kubernetes.io/hostname": n.Name, "zone": fmt.Sprint(i % 2)}
			n.Spec.Taints = []corev1.Taint{{Key: "soft", Effect: corev1.TaintEffectPreferNoSchedule}}
		}))
	}
	list := l.Report().Resources.NodeClasses
	if len(list) != 2 || list[0].Count != 500 || list[0].Labels["kubernetes.io/hostname"] != "" ||
		list[0].Labels["zone"] == "" || len(list[0].Taints) != 0 {
		t.Errorf("got %+v", list)
	}
}

func model(number int64, ranges ...clusterv1alpha1.ResourceModelRange) clusterv1alpha1.ResourceModel {
	return clusterv1alpha1.ResourceModel{Grade: number, Ranges: ranges}
}

func span(name, from, to string) clusterv1alpha1.ResourceModelRange {
	return clusterv1alpha1.ResourceModelRange{
		Name: corev1.ResourceName(name), Min: resource.MustParse(from), Max: resource.MustParse(to),
	}
}

func TestModels(t *testing.T) {
	const end = "9223372036854775807"
	for name, tc := range map[string]struct {
		models []clusterv1alpha1.ResourceModel
		err    string
	}{
		"none": {nil, ""},
		"two": {
			[]clusterv1alpha1.ResourceModel{model(0, span("cpu", "0", "500m")), model(1, span("cpu", "500m", end))}, "",
		},
		"in any order": {
			[]clusterv1alpha1.ResourceModel{model(1, span("cpu", "1", end)), model(0, span("cpu", "0", "1"))}, "",
		},
		"a gap": {
			[]clusterv1alpha1.ResourceModel{model(0, span("cpu", "0", "1")), model(1, span("cpu", "2", end))},
			"must be where the grade before ends",
		},
		"not from 0": {
			[]clusterv1alpha1.ResourceModel{model(0, span("cpu", "1", end))}, "must be where the grade before ends",
		},
		"ends too soon": {
			[]clusterv1alpha1.ResourceModel{model(0, span("cpu", "0", "5"))}, "as this is the last grade",
		},
		"backwards": {[]clusterv1alpha1.ResourceModel{model(0, span("cpu", "0", "0"))}, "must be more than min"},
		"twice": {
			[]clusterv1alpha1.ResourceModel{model(0, span("cpu", "0", "1")), model(0, span("cpu", "1", end))},
			"must be there once",
		},
		"other resources": {
			[]clusterv1alpha1.ResourceModel{model(0, span("cpu", "0", "1")), model(1, span("memory", "0", end))},
			"does not have this resource",
		},
	} {
		_, err := gradesOf(tc.models)
		if (tc.err == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), tc.err) {
			t.Errorf("%s: got %v, want %q", name, err, tc.err)
		}
	}
}

func TestModelings(t *testing.T) {
	const gib = int64(1) << 30
	var nodes []room
	for _, free := range []amounts{
		{cpu: 500, memory: 64 * gib}, {cpu: 1000, memory: 4 * gib}, {cpu: 2000, memory: 15 * gib},
		{cpu: 500_000, memory: 2048 * gib}, {},
	} {
		nodes = append(nodes, room{free: free})
	}
	grades, err := gradesOf(nil)
	if err != nil {
		t.Fatal(err)
	}
	var counts []int
	for _, m := range modelings(grades, nodes) {
		counts = append(counts, m.Count)
	}
	if diff := cmp.Diff([]int{2, 2, 0, 0, 0, 0, 0, 0, 1}, counts); diff != "" {
		t.Error(diff)
	}
}

// What a large cluster costs: the numbers are in docs/federation-members.md.
func TestMemory(t *testing.T) {
	if testing.Short() {
		t.Skip("counts memory")
	}
	heap := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before := heap()
	l := NewAccount(DefaultLimits())
	for i := range 5_000 {
		l.SetNode(nodeWith(fmt.Sprint("node-", i),
			resources("cpu", "16", "memory", "64Gi", "pods", "110", "ephemeral-storage", "100Gi"),
			func(n *corev1.Node) {
				n.Labels = map[string]string{"kubernetes.io/hostname": n.Name}
				for k := range 25 {
					n.Labels[fmt.Sprint("example.com/label-of-some-length-", k)] = fmt.Sprint("value-", k, "-", i%7)
				}
			}))
	}
	nodes := heap()
	for i := range 100_000 {
		l.SetPod(podOn(fmt.Sprint("node-", i%5_000), fmt.Sprint("pod-", i),
			resources("cpu", fmt.Sprint(i%40*25, "m"), "memory", fmt.Sprint(i%16*128, "Mi"))))
	}
	all := heap()
	perNode, perPod := (nodes-before)/5_000, (all-nodes)/100_000
	t.Logf("%d bytes per node, %d per pod, %d MiB together", perNode, perPod, (all-before)>>20)
	if perNode > 6<<10 || perPod > 200 {
		t.Errorf("%d bytes per node, %d per pod", perNode, perPod)
	}
	runtime.KeepAlive(l)
}

func FuzzAccount(f *testing.F) {
	f.Add("4", "-1", "a", "k", 7)
	f.Add("1e999", "9223372036854775808", "", "kubernetes.io/hostname", 1)
	f.Fuzz(func(t *testing.T, has, wants, name, label string, n int) {
		hasQuantity, err := resource.ParseQuantity(has)
		if err != nil {
			return
		}
		wantsQuantity, err := resource.ParseQuantity(wants)
		if err != nil {
			return
		}
		l := NewAccount(Limits{Nodes: 100, Pods: 100})
		for i := range n % 100 {
			l.SetNode(nodeWith(fmt.Sprint(name, i),
				corev1.ResourceList{
					"cpu": hasQuantity, corev1.ResourceName(label): hasQuantity, "pods": resource.MustParse("5"),
				}))
			l.SetPod(podOn(fmt.Sprint(name, i%3), fmt.Sprint(i),
				corev1.ResourceList{"cpu": wantsQuantity, corev1.ResourceName(label): wantsQuantity}))
		}
		status := &clusterv1alpha1.ClusterStatus{}
		l.Report().Describe(nil, status)
		for _, list := range []corev1.ResourceList{
			status.ResourceSummary.Allocatable, status.ResourceSummary.Allocated, status.ResourceSummary.Allocating,
			status.ResourceSummary.Available, status.ResourceSummary.Contiguous,
		} {
			for resource, quantity := range list {
				if quantity.Sign() < 0 {
					t.Errorf("%s of %s", quantity.String(), resource)
				}
			}
		}
	})
}
