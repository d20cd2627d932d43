package docs

import (
	"fmt"
	"maps"
	"net/netip"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	"github.com/trellis-garden/trellis/extensions/federation/pkg/fleet"
	"github.com/trellis-garden/trellis/extensions/provider-local/pkg/controller/backup"
	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	etcdcomponent "github.com/trellis-garden/trellis/pkg/component/etcd"
	"github.com/trellis-garden/trellis/pkg/component/networkpolicies"
	"github.com/trellis-garden/trellis/pkg/egress"
	"github.com/trellis-garden/trellis/pkg/gardenlet/shoot/components"
	"github.com/trellis-garden/trellis/pkg/images"
)

const networkPage = "security-network.md"

// party is a pod, or an address outside of the pods' network.
type party struct {
	// group and name are how it stands in the table; what is in another group than a namespace has no pods.
	group, name string
	namespace   string
	labels      map[string]string
	address     netip.Addr
	// ports are what it listens on.
	ports []networkPort
}

type networkPort struct {
	protocol corev1.Protocol
	number   int32
}

func (p networkPort) String() string {
	if p.protocol == corev1.ProtocolUDP {
		return fmt.Sprintf("%d/udp", p.number)
	}
	return fmt.Sprint(p.number)
}

// seed is one whose network plugin enforces policies.
type seed struct {
	namespaces map[string]map[string]string
	policies   []*networkingv1.NetworkPolicy
	parties    []party
}

// allows decides as Kubernetes defines it: of the policies that select a pod for a direction one has to allow a
// connection, if there is any.
func (s *seed) allows(from, to party, port networkPort) bool {
	return s.direction(from, to, port, networkingv1.PolicyTypeEgress) &&
		s.direction(to, from, port, networkingv1.PolicyTypeIngress)
}

func (s *seed) direction(own, other party, port networkPort, direction networkingv1.PolicyType) bool {
	selected := false
	for _, policy := range s.policies {
		if own.namespace != policy.Namespace || own.namespace == "" ||
			!slices.Contains(policy.Spec.PolicyTypes, direction) || !matches(&policy.Spec.PodSelector, own.labels) {
			continue
		}
		selected = true
		if direction == networkingv1.PolicyTypeIngress {
			for _, rule := range policy.Spec.Ingress {
				if portIn(rule.Ports, port) && s.isAmong(rule.From, policy.Namespace, other) {
					return true
				}
			}
			continue
		}
		for _, rule := range policy.Spec.Egress {
			if portIn(rule.Ports, port) && s.isAmong(rule.To, policy.Namespace, other) {
				return true
			}
		}
	}
	return !selected
}

func (s *seed) isAmong(peers []networkingv1.NetworkPolicyPeer, namespace string, p party) bool {
	if len(peers) == 0 {
		return true
	}
	return slices.ContainsFunc(peers, func(peer networkingv1.NetworkPolicyPeer) bool {
		switch {
		case peer.IPBlock != nil:
			// Plugins differ in whether addresses of pods count. The policies have to hold where they do.
			within := func(text string) bool { return netip.MustParsePrefix(text).Contains(p.address) }
			return within(peer.IPBlock.CIDR) && !slices.ContainsFunc(peer.IPBlock.Except, within)
		case p.namespace == "":
			return false
		case peer.NamespaceSelector == nil:
			return p.namespace == namespace && matches(peer.PodSelector, p.labels)
		default:
			return matches(peer.NamespaceSelector, s.namespaces[p.namespace]) &&
				(peer.PodSelector == nil || matches(peer.PodSelector, p.labels))
		}
	})
}

func matches(selector *metav1.LabelSelector, set map[string]string) bool {
	compiled, err := metav1.LabelSelectorAsSelector(selector)
	return err == nil && compiled.Matches(labels.Set(set))
}

func portIn(ports []networkingv1.NetworkPolicyPort, port networkPort) bool {
	return len(ports) == 0 || slices.ContainsFunc(ports, func(p networkingv1.NetworkPolicyPort) bool {
		return ptr.Deref(p.Protocol, corev1.ProtocolTCP) == port.protocol &&
			(p.Port == nil || p.Port.IntVal == port.number)
	})
}

// podsOf says which pods run where. They are those of the golden files and charts, with their labels and ports.
func podsOf(t *testing.T, templates map[string][]podTemplate) map[string][]string {
	t.Helper()
	grows := gardencorev1beta1.Provider{Workers: []gardencorev1beta1.Worker{{Maximum: 1}}}
	pods := maps.Clone(otherPods)
	shoots, fleets := podsBeside(templates)
	high := &gardencorev1beta1.ControlPlane{HighAvailability: &gardencorev1beta1.HighAvailability{}}
	pods["shoot"] = append(controlPlanePods(t, templates,
		&gardencorev1beta1.ShootSpec{Provider: grows, ControlPlane: high}), shoots...)
	pods["fleet"] = append(controlPlanePods(t, templates, &gardencorev1beta1.ShootSpec{}), fleets...)
	return pods
}

// podsBeside are those that our extensions run beside control planes. The namespaces in their golden files tell whether
// it is that of a shoot or of a fleet.
func podsBeside(templates map[string][]podTemplate) (shoots, fleets []string) {
	isOfExtension := func(source string) bool {
		return slices.ContainsFunc(images.Extensions,
			func(e images.Extension) bool { return strings.HasPrefix(source, e.Dir+"/") })
	}
	for _, source := range slices.Sorted(maps.Keys(templates)) {
		for _, template := range templates[source] {
			// A golden file with a Pod shows a part of another one's.
			if !isOfExtension(source) || !strings.HasPrefix(template.namespace, "shoot--") ||
				strings.HasPrefix(template.name, "Pod/") {
				continue
			}
			pods := &shoots
			if strings.HasSuffix(template.namespace, "--fleet") {
				pods = &fleets
			}
			if pod := source + " " + template.name; !slices.Contains(*pods, pod) {
				*pods = append(*pods, pod)
			}
		}
	}
	return shoots, fleets
}

func TestPodsOfExtensionsBesideControlPlanes(t *testing.T) {
	dir := images.Extensions[0].Dir + "/pkg/example"
	shoots, fleets := podsBeside(map[string][]podTemplate{
		dir: {
			{name: "Deployment/cloud-controller", namespace: "shoot--demo--one"},
			{name: "Deployment/cloud-controller", namespace: "shoot--demo--one"},
			{name: "Deployment/other", namespace: "shoot--demo--fleet"},
			{name: "Deployment/node-plugin", namespace: "kube-system"}, {name: "Pod/part", namespace: "shoot--demo--one"},
		},
		"pkg/component/example": {{name: "Deployment/example", namespace: "shoot--demo--one"}},
	})
	if !slices.Equal(shoots, []string{dir + " Deployment/cloud-controller"}) ||
		!slices.Equal(fleets, []string{dir + " Deployment/other"}) {
		t.Errorf("got %q and %q", shoots, fleets)
	}
}

// controlPlanePods are those of the components that a shoot has in its seed.
func controlPlanePods(t *testing.T, templates map[string][]podTemplate, shoot *gardencorev1beta1.ShootSpec) []string {
	t.Helper()
	var pods []string
	for _, c := range components.ControlPlane {
		if !c.IsPartOf(shoot) {
			continue
		}
		workload := strings.TrimPrefix(fmt.Sprintf("%T/%s", c.Workload(""), c.Name), "*v1.")
		var found []string
		for source, list := range templates {
			if !strings.HasPrefix(source, "charts/") &&
				slices.ContainsFunc(list, func(template podTemplate) bool { return template.name == workload }) {
				found = append(found, source+" "+workload)
			}
		}
		if len(found) != 1 {
			t.Fatalf("the golden files with %s are %q; there has to be one", workload, found)
		}
		pods = append(pods, found[0])
	}
	return pods
}

// otherPods are those that do not belong to a shoot's control plane.
var otherPods = map[string][]string{
	"garden": {
		"pkg/component/etcd StatefulSet/etcd-main", "pkg/component/etcd StatefulSet/etcd-events",
		"pkg/component/kubeapiserver Deployment/kube-apiserver",
		"pkg/component/kubecontrollermanager Deployment/kube-controller-manager",
		"pkg/component/egress Deployment/egress",
		"pkg/gardenlet/seed Deployment/reserve-excess-capacity-0", "charts/garden Deployment/garden-apiserver",
		"charts/garden Deployment/garden-controller-manager", "charts/garden Deployment/garden-dashboard",
		"charts/garden Deployment/garden-scheduler", "charts/gardenlet Deployment/gardenlet",
		"charts/gateway Deployment/gateway", "extensions/provider-local/charts/local-issuer Deployment/local-issuer",
		"charts/resource-manager Deployment/resource-manager",
	},
	"machines": {
		"extensions/provider-local/pkg/machine Pod/machine-m1", "extensions/provider-local/pkg/machine Pod/machine-m1",
	},
	"extension": extensionPods(),
}

// extensionPods are those of the extensions of this repository.
func extensionPods() []string {
	var pods []string
	for _, e := range images.Extensions {
		pods = append(pods, extensionPod(e))
	}
	return pods
}

// extensionPod is the pod of an extension: its chart has a Deployment with its name.
func extensionPod(e images.Extension) string { return chartOf(e) + " Deployment/" + e.Name }

func chartOf(e images.Extension) string { return e.Dir + "/charts/" + e.Name }

// everyExtension is how the table names them where all are alike.
const everyExtension = "extension each "

// summarized puts one line in place of those that all extensions have.
func summarized(found map[string]bool) map[string]bool {
	result := maps.Clone(found)
	for _, first := range slices.Sorted(maps.Keys(found)) {
		rest, ok := strings.CutPrefix(first, "extension "+images.Extensions[0].Name+" ")
		lineOf := func(e images.Extension) string { return "extension " + e.Name + " " + rest }
		if !ok || slices.ContainsFunc(images.Extensions, func(e images.Extension) bool { return !found[lineOf(e)] }) {
			continue
		}
		for _, e := range images.Extensions {
			delete(result, lineOf(e))
		}
		result[everyExtension+rest] = true
	}
	return result
}

// listening are ports of pods that their templates do not list.
var listening = map[string][]networkPort{
	"machine-m1": {{corev1.ProtocolTCP, 10250}, {corev1.ProtocolUDP, 8472}},
	"federation": {{corev1.ProtocolTCP, egress.ServedAPIsPort}},
}

// replicasOf are the pods of a name: one, but two of an etcd with several members.
func replicasOf(t *testing.T, templates []podTemplate, name string, areSeveral bool) []podTemplate {
	t.Helper()
	isOther := func(template podTemplate) bool { return template.name != name }
	named := slices.DeleteFunc(slices.Clone(templates), isOther)
	if len(named) == 0 {
		t.Fatalf("there is no pod %s", name)
	}
	peerPort := networkPort{corev1.ProtocolTCP, etcdcomponent.PeerPort}
	for _, template := range named {
		if areSeveral && slices.Contains(portsOf(template.spec), peerPort) {
			return []podTemplate{template, template}
		}
	}
	return named[:1]
}

// newSeed makes a seed with two shoots, which are highly available, a fleet, an extension, and what is outside.
func newSeed(t *testing.T) *seed {
	t.Helper()
	nodes := "172.18.0.0/24"
	values := networkpolicies.Values{
		Networks: gardencorev1beta1.SeedNetworks{
			Nodes: &nodes, Pods: "10.1.0.0/16", Services: "10.2.0.0/16", BlockCIDRs: []string{"198.100.0.0/16"},
		},
		APIServer:  []networkpolicies.Endpoint{{Address: netip.MustParseAddr("172.18.0.5"), Port: 6443}},
		Exceptions: []egress.Allowance{{Network: netip.MustParsePrefix("10.9.0.7/32"), Port: 443}},
		BackedUp:   true,
	}
	workerless, several := values, values
	workerless.WithoutVPN, several.HighlyAvailable = true, true
	role := func(value string) map[string]string { return map[string]string{gardencorev1beta1.GardenRole: value} }
	s := &seed{namespaces: map[string]map[string]string{}}
	address := netip.MustParseAddr("10.1.0.1")
	templates := podTemplates(t)
	pods := podsOf(t, templates)
	add := func(group, namespace string, kind networkpolicies.Kind, v networkpolicies.Values,
		nsLabels map[string]string) {
		s.namespaces[namespace] = map[string]string{corev1.LabelMetadataName: namespace}
		maps.Copy(s.namespaces[namespace], nsLabels)
		for _, object := range networkpolicies.Objects(kind, namespace, v) {
			s.policies = append(s.policies, object.(*networkingv1.NetworkPolicy))
		}
		for _, pod := range pods[group] {
			source, name, _ := strings.Cut(pod, " ")
			_, short, _ := strings.Cut(name, "/")
			for _, template := range replicasOf(t, templates[source], name, v.HighlyAvailable) {
				address = address.Next()
				s.parties = append(s.parties, party{
					group: group, name: short, namespace: namespace, labels: template.labels, address: address,
					ports: append(portsOf(template.spec), listening[short]...),
				})
			}
		}
	}
	add("shoot", "shoot--demo--one", networkpolicies.Shoot, several, role("shoot"))
	add("shoot", "shoot--demo--two", networkpolicies.Shoot, several, role("shoot"))
	add("fleet", "shoot--demo--fleet", networkpolicies.Shoot, workerless, role("shoot"))
	add("fleet", "shoot--other--fleet", networkpolicies.Shoot, workerless, role("shoot"))
	add("extension", "extension-example", networkpolicies.Extension, values, role("extension"))
	add("garden", "garden", networkpolicies.Garden, several, nil)
	add("machines", "infra-shoot--demo--one", networkpolicies.Machines, values, role("infra"))
	add("machines", "infra-shoot--demo--two", networkpolicies.Machines, values, role("infra"))
	for _, e := range images.Extensions {
		s.policies = append(s.policies, charted(t, chartOf(e), "extension-example")...)
	}
	for _, namespace := range []string{"shoot--demo--fleet", "shoot--other--fleet"} {
		policy := &networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: namespace}}
		fleet.FillNetworkPolicy(policy)
		s.policies = append(s.policies, policy)
	}
	for _, namespace := range []string{
		"shoot--demo--one", "shoot--demo--two", "shoot--demo--fleet", "shoot--other--fleet", "garden",
	} {
		policy, err := backup.WayToStore(namespace, "https://172.18.0.2:9000")
		if err != nil {
			t.Fatal(err)
		}
		s.policies = append(s.policies, policy)
	}
	s.namespaces["kube-system"] = map[string]string{corev1.LabelMetadataName: "kube-system"}
	s.namespaces["default"] = map[string]string{corev1.LabelMetadataName: "default"}
	https := []networkPort{{corev1.ProtocolTCP, 443}}
	s.parties = append(s.parties,
		party{
			group: "outside", name: "dns", namespace: "kube-system", labels: map[string]string{"k8s-app": "kube-dns"},
			address: netip.MustParseAddr("10.1.9.1"), ports: []networkPort{{corev1.ProtocolUDP, 53}},
		},
		party{
			group: "outside", name: "pod-of-others", namespace: "default", address: netip.MustParseAddr("10.1.9.2"),
			ports: https,
		},
		party{
			group: "outside", name: "seed-apiserver", address: netip.MustParseAddr("172.18.0.5"),
			ports: []networkPort{{corev1.ProtocolTCP, 6443}},
		},
		party{
			group: "outside", name: "kubelet", address: netip.MustParseAddr("172.18.0.9"),
			ports: []networkPort{{corev1.ProtocolTCP, 10250}},
		},
		party{group: "outside", name: "public", address: netip.MustParseAddr("93.184.215.14"), ports: https},
		party{group: "outside", name: "private", address: netip.MustParseAddr("10.200.0.1"), ports: https},
		party{
			group: "outside", name: "exception", address: netip.MustParseAddr("10.9.0.7"),
			ports: append([]networkPort{{corev1.ProtocolTCP, 22}}, https...),
		},
		party{
			group: "outside", name: "metadata", address: netip.MustParseAddr("169.254.169.254"),
			ports: []networkPort{{corev1.ProtocolTCP, 80}},
		},
		party{
			group: "outside", name: "metadata", address: netip.MustParseAddr("100.100.100.200"),
			ports: []networkPort{{corev1.ProtocolTCP, 80}},
		},
		party{
			group: "outside", name: "metadata", address: netip.MustParseAddr("168.63.129.16"),
			ports: []networkPort{{corev1.ProtocolTCP, 80}},
		},
		party{
			group: "outside", name: "metadata", address: netip.MustParseAddr("fd00:ec2::254"),
			ports: []networkPort{{corev1.ProtocolTCP, 80}},
		},
		party{
			group: "outside", name: "metadata", address: netip.MustParseAddr("fd20:ce::254"),
			ports: []networkPort{{corev1.ProtocolTCP, 80}},
		},
		party{group: "outside", name: "blocked", address: netip.MustParseAddr("198.100.0.1"), ports: https},
		party{
			group: "outside", name: "registry", address: netip.MustParseAddr("172.18.0.3"),
			ports: []networkPort{{corev1.ProtocolTCP, 5000}},
		},
		party{
			group: "outside", name: "local-cloud", address: netip.MustParseAddr("172.18.0.2"),
			ports: []networkPort{{corev1.ProtocolTCP, 8090}, {corev1.ProtocolTCP, 9000}},
		},
	)
	return s
}

// portsOf are the ports of containers and of what their probes ask.
func portsOf(spec corev1.PodSpec) []networkPort {
	var ports []networkPort
	add := func(port networkPort) {
		if !slices.Contains(ports, port) {
			ports = append(ports, port)
		}
	}
	for _, container := range spec.Containers {
		for _, port := range container.Ports {
			protocol := port.Protocol
			if protocol == "" {
				protocol = corev1.ProtocolTCP
			}
			add(networkPort{protocol, port.ContainerPort})
		}
		for _, probe := range []*corev1.Probe{
			container.ReadinessProbe, container.LivenessProbe, container.StartupProbe,
		} {
			if probe != nil && probe.HTTPGet != nil && probe.HTTPGet.Port.IntVal != 0 {
				add(networkPort{corev1.ProtocolTCP, probe.HTTPGet.Port.IntVal})
			}
		}
	}
	return ports
}

// connectionsOf are all that the policies let through, as lines of the table without reasons.
func (s *seed) connectionsOf() map[string]bool {
	found := map[string]bool{}
	for _, from := range s.parties {
		for _, to := range s.parties {
			if from.address == to.address || from.group == "outside" && to.group == "outside" {
				continue
			}
			for _, port := range to.ports {
				if s.allows(from, to, port) {
					found[line(from, to, port)] = true
				}
			}
		}
	}
	return found
}

func line(from, to party, port networkPort) string {
	where := to.group + " "
	switch {
	case to.group == "outside":
		where = ""
	case from.namespace == to.namespace:
		where = "own "
	}
	return fmt.Sprintf("%s %s -> %s%s %s", from.group, from.name, where, to.name, port)
}

// What the policies let through is what the table of the page lists, for every pod and every port that it listens on;
// nothing else.
func TestNetworkPoliciesDoWhatTheTableSays(t *testing.T) {
	page, err := os.ReadFile(networkPage)
	if err != nil {
		t.Fatal(err)
	}
	wanted := map[string]bool{}
	row := regexp.MustCompile(`(?m)^\| (.+?) \| (.+?) \| (.+?) \| (.+?) \| (.+?) \|$`)
	quoted := regexp.MustCompile("`([^`]+)`")
	each := func(cell string) []string {
		var names []string
		for _, match := range quoted.FindAllStringSubmatch(cell, -1) {
			names = append(names, match[1])
		}
		return names
	}
	for _, match := range row.FindAllStringSubmatch(string(page), -1) {
		for _, group := range each(match[1]) {
			for _, from := range each(match[2]) {
				for _, to := range each(match[3]) {
					for _, port := range each(match[4]) {
						wanted[fmt.Sprintf("%s %s -> %s %s", group, from, to, port)] = true
					}
				}
			}
		}
	}
	found := summarized(newSeed(t).connectionsOf())
	for _, connection := range slices.Sorted(maps.Keys(found)) {
		if !wanted[connection] {
			t.Errorf("let through, and not in docs/%s: %s", networkPage, connection)
		}
	}
	for _, connection := range slices.Sorted(maps.Keys(wanted)) {
		if !found[connection] {
			t.Errorf("in docs/%s, and refused: %s", networkPage, connection)
		}
	}
}

// Every pod that lies in a namespace of a seed with policies is one that the table is about.
func TestEveryPodOfASeedIsInTheTable(t *testing.T) {
	known, all := map[string]bool{}, podTemplates(t)
	for _, pods := range podsOf(t, all) {
		for _, pod := range pods {
			known[pod] = true
		}
	}
	for source, templates := range all {
		for _, template := range templates {
			namespace := template.namespace
			if template.spec.HostNetwork ||
				namespace != "garden" && !strings.HasPrefix(namespace, "shoot--") &&
					!strings.HasPrefix(source, "extensions/") && !strings.HasPrefix(source, "charts/") {
				continue
			}
			// Machines and system components of shoots; the test of a container, which is no pod of its own.
			if namespace == "kube-system" || strings.HasPrefix(namespace, "infra-") ||
				strings.HasPrefix(template.name, "Pod/") ||
				strings.HasPrefix(template.name, "Deployment/reserve-excess-capacity-") {
				continue
			}
			if !known[source+" "+template.name] {
				t.Errorf("%s %s runs in a seed: add it to otherPods, and to docs/%s what it connects to", source,
					template.name, networkPage)
			}
		}
	}
}

// charted are the policies that a chart brings along, if any.
func charted(t *testing.T, dir, namespace string) []*networkingv1.NetworkPolicy {
	t.Helper()
	var policies []*networkingv1.NetworkPolicy
	for _, text := range renderChart(t, dir) {
		for _, document := range strings.Split("\n"+text, "\n---\n") {
			if !strings.Contains(document, "kind: NetworkPolicy") {
				continue
			}
			policy := &networkingv1.NetworkPolicy{}
			if err := yaml.Unmarshal([]byte(document), policy); err != nil {
				t.Fatal(err)
			}
			policy.Namespace = namespace
			policies = append(policies, policy)
		}
	}
	return policies
}
