package scheduling

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

func node(name string, change func(*corev1.Node)) *corev1.Node {
	n := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Labels: map[string]string{corev1.LabelHostname: name, corev1.LabelTopologyZone: "a"},
		},
	}
	n.Status.Allocatable = corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("2"), corev1.ResourceMemory: resource.MustParse("4Gi"),
		corev1.ResourcePods: resource.MustParse("3"),
	}
	if change != nil {
		change(n)
	}
	return n
}

func pod(name, cpu string, change func(*corev1.Pod)) *corev1.Pod {
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, Labels: map[string]string{"app": "web"}},
	}
	p.Spec.Containers = []corev1.Container{
		{
			Resources: corev1.ResourceRequirements{
				Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)},
			},
		},
	}
	if change != nil {
		change(p)
	}
	return p
}

var web = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}

func apart(key string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{
				{LabelSelector: web, TopologyKey: key},
			},
		}}
	}
}

func together(key string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Spec.Affinity = &corev1.Affinity{PodAffinity: &corev1.PodAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{
				{LabelSelector: web, TopologyKey: key},
			},
		}}
	}
}

func spreadBy(key string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{
			{MaxSkew: 1, TopologyKey: key, WhenUnsatisfiable: corev1.DoNotSchedule, LabelSelector: web},
		}
	}
}

func port(number int32) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Spec.Containers[0].Ports = []corev1.ContainerPort{{HostPort: number}}
	}
}

func sidecarPort(number int32) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		always := corev1.ContainerRestartPolicyAlways
		p.Spec.InitContainers = []corev1.Container{
			{RestartPolicy: &always, Ports: []corev1.ContainerPort{{HostPort: number}}},
		}
	}
}

func TestFits(t *testing.T) {
	tainted := func(n *corev1.Node) {
		n.Spec.Taints = []corev1.Taint{{Key: "dedicated", Value: "db", Effect: corev1.TaintEffectNoSchedule}}
	}
	volume := func(p *corev1.Pod) {
		p.Spec.Volumes = []corev1.Volume{
			{
				VolumeSource: corev1.VolumeSource{
					PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data"},
				},
			},
		}
	}
	for name, test := range map[string]struct {
		node *corev1.Node
		on   []*corev1.Pod
		pod  *corev1.Pod
		want string
	}{
		"empty": {node("n", nil), nil, pod("p", "2", nil), ""},
		"too big": {
			node("n", nil), []*corev1.Pod{pod("a", "1", nil)}, pod("p", "1500m", nil), "of cpu is wanted",
		},
		"too many": {
			node("n", nil), []*corev1.Pod{pod("a", "0", nil), pod("b", "0", nil), pod("c", "0", nil)},
			pod("p", "0", nil), "of pods is wanted",
		},
		"tainted": {node("n", tainted), nil, pod("p", "1", nil), "dedicated=db:NoSchedule"},
		"tolerated": {
			node("n", tainted), nil, pod("p", "1",
				func(p *corev1.Pod) {
					p.Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
				}), "",
		},
		"cordoned": {
			node("n", func(n *corev1.Node) { n.Spec.Unschedulable = true }), nil, pod("p", "1", nil), "unschedulable",
		},
		"other label": {
			node("n", nil), nil, pod("p", "1",
				func(p *corev1.Pod) { p.Spec.NodeSelector = map[string]string{"disk": "ssd"} }), "node selector",
		},
		"port taken": {
			node("n", nil), []*corev1.Pod{pod("a", "0", port(80))}, pod("p", "0", port(80)), "port 80",
		},
		"port free": {node("n", nil), []*corev1.Pod{pod("a", "0", port(80))}, pod("p", "0", port(81)), ""},
		"apart": {
			node("n", nil), []*corev1.Pod{pod("a", "0", nil)}, pod("p", "0", apart(corev1.LabelHostname)),
			"must not be with",
		},
		"kept away": {
			node("n", nil), []*corev1.Pod{pod("a", "0", apart(corev1.LabelHostname))}, pod("p", "0", nil),
			"does not want it",
		},
		"first of all": {node("n", nil), nil, pod("p", "0", together(corev1.LabelHostname)), ""},
		"together": {
			node("n", nil), []*corev1.Pod{pod("a", "0", nil)}, pod("p", "0", together(corev1.LabelHostname)), "",
		},
		"alone": {
			node("n", nil), nil, pod("p", "0",
				func(p *corev1.Pod) { together(corev1.LabelHostname)(p); p.Labels = nil }), "must be with",
		},
		"skewed": {
			node("n", nil), []*corev1.Pod{pod("a", "0", nil)}, pod("p", "0", spreadBy(corev1.LabelHostname)),
			"a skew of 2",
		},
		"spread":        {node("n", nil), nil, pod("p", "0", spreadBy(corev1.LabelHostname)), ""},
		"no such label": {node("n", nil), nil, pod("p", "0", spreadBy("rack")), "no label rack"},
		"port of one that stays": {
			node("n", nil), []*corev1.Pod{pod("a", "0", sidecarPort(80))}, pod("p", "0", port(80)), "port 80",
		},
		"with two kinds": {
			node("n", nil), []*corev1.Pod{
				pod("a", "0", nil), pod("b", "0", func(p *corev1.Pod) { p.Labels = map[string]string{"tier": "db"} }),
			},
			pod("p", "0", func(p *corev1.Pod) {
				together(corev1.LabelHostname)(p)
				affinity := p.Spec.Affinity.PodAffinity
				affinity.RequiredDuringSchedulingIgnoredDuringExecution =
					append(affinity.RequiredDuringSchedulingIgnoredDuringExecution,
						corev1.PodAffinityTerm{
							LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"tier": "db"}},
							TopologyKey:   corev1.LabelHostname,
						})
			}), "must be with", // one pod that both terms mean
		},
		"spread of all": {node("n", nil), []*corev1.Pod{pod("a", "0", nil)}, pod("p", "0", func(p *corev1.Pod) {
			spreadBy(corev1.LabelHostname)(p)
			p.Spec.TopologySpreadConstraints[0].LabelSelector = &metav1.LabelSelector{}
		}), ""},
		"spread by two labels": {
			node("n", func(n *corev1.Node) { n.Labels["rack"] = "1" }), []*corev1.Pod{pod("a", "0", nil)},
			pod("p", "0", func(p *corev1.Pod) {
				spreadBy(corev1.LabelHostname)(p)
				p.Spec.TopologySpreadConstraints = append(p.Spec.TopologySpreadConstraints,
					corev1.TopologySpreadConstraint{
						MaxSkew: 5, TopologyKey: "rack", WhenUnsatisfiable: corev1.DoNotSchedule, LabelSelector: web,
					})
			}), "", // the other node has no rack, and does not count
		},
		"far volume": {
			node("n", func(n *corev1.Node) { n.Labels[corev1.LabelTopologyZone] = "b" }), nil, pod("p", "0", volume),
			"volume pv",
		},
		"near volume": {node("n", nil), nil, pod("p", "0", volume), ""},
	} {
		t.Run(name, func(t *testing.T) {
			cluster := New(Facts{Claims: map[string]*corev1.PersistentVolume{"default/data": inZone("a")}})
			cluster.Add(test.node, test.on...)
			cluster.Add(node("other", nil))
			err := cluster.Fits(test.pod, "n")
			if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %q", err, test.want)
			}
		})
	}
}

func inZone(zone string) *corev1.PersistentVolume {
	return &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pv"}, Spec: corev1.PersistentVolumeSpec{
		NodeAffinity: &corev1.VolumeNodeAffinity{
			Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
				MatchExpressions: []corev1.NodeSelectorRequirement{
					{Key: corev1.LabelTopologyZone, Operator: corev1.NodeSelectorOpIn, Values: []string{zone}},
				},
			}}},
		},
	}}
}

func TestAffinityOfOtherNamespaces(t *testing.T) {
	cluster := New(Facts{Namespaces: map[string]labels.Set{"team": {"team": "a"}}})
	cluster.Add(node("n", nil), pod("a", "0", func(p *corev1.Pod) { p.Namespace = "team" }))
	keep := pod("p", "0", func(p *corev1.Pod) {
		apart(corev1.LabelHostname)(p)
		p.Spec.Affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution[0].NamespaceSelector =
			&metav1.LabelSelector{
				MatchLabels: map[string]string{"team": "a"},
			}
	})
	if cluster.Fits(keep, "n") == nil {
		t.Error("the namespace is selected")
	}
	if err := cluster.Fits(pod("p", "0", apart(corev1.LabelHostname)), "n"); err != nil {
		t.Errorf("only its own namespace counts: %v", err)
	}
}

func TestClonesAreIndependent(t *testing.T) {
	cluster := New(Facts{})
	cluster.Add(node("n", nil))
	clone := cluster.Clone()
	if name, ok := clone.PlaceOnAny(pod("p", "2", nil), clone.Names()); !ok || name != "n" {
		t.Fatal("the node is empty")
	}
	if clone.Fits(pod("q", "1", nil), "n") == nil {
		t.Error("the clone's node is full")
	}
	if err := cluster.Fits(pod("q", "1", nil), "n"); err != nil {
		t.Errorf("the original is changed: %v", err)
	}
	clone.Remove("n")
	if len(cluster.Names()) != 1 || len(clone.Names()) != 0 {
		t.Error("only the clone lost its node")
	}
}
