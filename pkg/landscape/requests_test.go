package landscape

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/trellis-garden/trellis/pkg/apis"
	"github.com/trellis-garden/trellis/pkg/component"
	"github.com/trellis-garden/trellis/pkg/component/kubeapiserver"
	"github.com/trellis-garden/trellis/pkg/encryption"
	"github.com/trellis-garden/trellis/pkg/images"
	"github.com/trellis-garden/trellis/pkg/secrets"
)

// nodeCPU is what kubelet tells of the smallest machine that a landscape is for: two cores, none of them reserved.
const nodeCPU = 2000

// Control planes in the landscape that it has to have room for, beside its fleet. Those with nodes have one each.
const (
	withNodes, withoutNodes = 3, 12
)

var requestedCPU = regexp.MustCompile(`\bcpu: "?(\d+)m"?`)

// cpuIn sums up the CPU that is requested in files, in thousandths. In each there has to be some.
func cpuIn(t *testing.T, paths ...string) (sum int64) {
	t.Helper()
	for _, path := range paths {
		text, err := os.ReadFile(filepath.Join("..", "..", path))
		if err != nil {
			t.Fatal(err)
		}
		found := requestedCPU.FindAllSubmatch(text, -1)
		if len(found) == 0 {
			t.Errorf("%s requests no CPU, as far as this test can read it", path)
		}
		for _, match := range found {
			cpu, err := strconv.ParseInt(string(match[1]), 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			sum += cpu
		}
	}
	return sum
}

// runtimeFiles are those of the runtime cluster's own pods.
func runtimeFiles(t *testing.T) []string {
	t.Helper()
	paths := []string{dnsFile}
	err := fs.WalkDir(files, "files/kubernetes/manifests", func(path string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			paths = append(paths, "pkg/landscape/"+path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return paths
}

// extensionFiles are templates of the extensions' charts, which have the pods of each.
func extensionFiles(t *testing.T) []string {
	t.Helper()
	var paths []string
	for _, extension := range images.Extensions {
		found, err := filepath.Glob(filepath.Join("..", "..", extension.Dir, "charts", "*", "templates", "*.yaml"))
		if err != nil || len(found) == 0 {
			t.Fatalf("charts of %s: %q, %v", extension.Name, found, err)
		}
		for _, path := range found {
			paths = append(paths, strings.TrimPrefix(path, "../../"))
		}
	}
	return paths
}

// gardenWorkload is a workload of the garden.
type gardenWorkload struct {
	replicas int32
	pod      corev1.PodSpec
}

// emptyGarden is a runtime cluster that has what the garden's control plane begins with.
func emptyGarden(t *testing.T) (client.Client, secrets.Manager) {
	t.Helper()
	c := fake.NewClientBuilder().WithScheme(apis.SeedScheme()).Build()
	if _, err := ensure(t, c, startCloud(t, objectStore{})); err != nil {
		t.Fatal(err)
	}
	manager, err := gardenManager(t.Context(), c, encryption.Record{})
	if err != nil {
		t.Fatal(err)
	}
	if err := component.GenerateCertificateAuthorities(t.Context(), manager, kubeapiserver.Authorities()); err != nil {
		t.Fatal(err)
	}
	return c, manager
}

// deployGardenParts deploys the components of the garden in a runtime cluster with so many nodes.
func deployGardenParts(ctx context.Context, c client.Client, manager secrets.Manager, nodes int) error {
	references := map[string]string{
		"etcd-steward": "etcd-steward:v1", "kube-apiserver": "kube-apiserver:v1", "kube-controller-manager": "kcm:v1",
	}
	first, second := gardenParts(c, manager, encryption.Record{}.Stage, "1.36.3", references,
		gardenAvailability(nodes))
	for _, part := range append(first, second...) {
		if err := part.Deploy(ctx); err != nil {
			return fmt.Errorf("%s: %w", part.name, err)
		}
	}
	return nil
}

// gardenWorkloads deploys the components of the garden, and returns its workloads by their names.
func gardenWorkloads(t *testing.T, nodes int) map[string]gardenWorkload {
	t.Helper()
	c, manager := emptyGarden(t)
	if err := deployGardenParts(t.Context(), c, manager, nodes); err != nil {
		t.Fatal(err)
	}
	return workloadsIn(t, c)
}

func workloadsIn(t *testing.T, c client.Client) map[string]gardenWorkload {
	t.Helper()
	sets, deployments := &appsv1.StatefulSetList{}, &appsv1.DeploymentList{}
	for _, list := range []client.ObjectList{sets, deployments} {
		if err := c.List(t.Context(), list, client.InNamespace(gardenNS)); err != nil {
			t.Fatal(err)
		}
	}
	all := map[string]gardenWorkload{}
	for _, set := range sets.Items {
		all[set.Name] = gardenWorkload{*set.Spec.Replicas, set.Spec.Template.Spec}
	}
	for _, deployment := range deployments.Items {
		all[deployment.Name] = gardenWorkload{*deployment.Spec.Replicas, deployment.Spec.Template.Spec}
	}
	return all
}

func cpuOf(pods ...corev1.PodSpec) (sum int64) {
	for _, pod := range pods {
		for _, container := range pod.Containers {
			sum += container.Resources.Requests.Cpu().MilliValue()
		}
	}
	return sum
}

// The garden's etcd and kube-apiserver come first: no pod of a seed or a shoot takes their place, and where CPU lacks
// they get more than those of one shoot do.
func TestTheGardenComesFirst(t *testing.T) {
	workloads := gardenWorkloads(t, 1)
	for name, want := range map[string]struct {
		class string
		least int64
	}{
		"etcd-main":               {component.PriorityGardenSystem500, 2 * cpuIn(t, etcdFile)},
		"etcd-events":             {component.PriorityGardenSystem500, 1},
		"kube-apiserver":          {component.PriorityGardenSystem500, 2 * cpuIn(t, apiServerFile)},
		"kube-controller-manager": {component.PriorityGardenSystem300, 1},
	} {
		if pod := workloads[name].pod; pod.PriorityClassName != want.class || cpuOf(pod) < want.least {
			t.Errorf("%s has the class %q and requests %dm of CPU, want %s and at least %dm", name,
				pod.PriorityClassName, cpuOf(pod), want.class, want.least)
		}
	}
}

// Golden files of the parts of a control plane.
const (
	etcdFile       = "pkg/component/etcd/testdata/backed-up.yaml"
	apiServerFile  = "pkg/component/kubeapiserver/testdata/workerless.yaml"
	controllerFile = "pkg/component/kubecontrollermanager/testdata/workerless.yaml"
	// dnsFile has a Deployment with two replicas.
	dnsFile = "pkg/landscape/files/system/coredns.yaml"
)

// cpuOnce is what is requested by all that a landscape with so many nodes has once, with its replicas.
func cpuOnce(t *testing.T, nodes int) int64 {
	t.Helper()
	pair := int64(gardenAvailability(nodes).Replicas(component.Pair))
	gateways := max(1, replicasIn(gatewayValues(nodes)))
	once := cpuIn(t, runtimeFiles(t)...) + cpuIn(t, dnsFile) + cpuIn(t, extensionFiles(t)...) +
		gateways*cpuIn(t, "charts/gateway/values.yaml") + pair*cpuIn(t, "charts/garden/values.yaml") +
		gardenletReplicas(nodes)*cpuIn(t, "charts/gardenlet/values.yaml") + cpuIn(t, "charts/resource-manager/values.yaml",
		"pkg/component/egress/testdata/objects.yaml", "extensions/federation/pkg/fleet/testdata/deployment.yaml")
	for _, workload := range gardenWorkloads(t, nodes) {
		once += int64(workload.replicas) * cpuOf(workload.pod)
	}
	return once
}

func replicasIn(values map[string]any) int64 {
	replicas, _ := values["replicas"].(int64)
	return replicas
}

// What a landscape with three nodes has once has room beside shoots on those that are left when a zone is lost.
func TestRequestsFitWithoutAZone(t *testing.T) {
	one, three := cpuOnce(t, 1), cpuOnce(t, 3)
	t.Logf("%dm on one node, %dm on three", one, three)
	if three <= one || three > 2*nodeCPU/2 {
		t.Errorf("%dm of CPU are requested, and two nodes have %dm, half of it for shoots", three, 2*nodeCPU)
	}
}

// A machine with two cores has room for 15 control planes with three nodes, beside all that a landscape has once, and
// for a second kube-apiserver of each while they are updated: for want of it, pods would take the place of others.
func TestRequestsFitTheNode(t *testing.T) {
	once := cpuOnce(t, 1)
	each := cpuIn(t, etcdFile, "pkg/component/etcd/testdata/events.yaml", apiServerFile, controllerFile)
	nodes := cpuIn(t,
		"pkg/component/kubescheduler/testdata/deployment.yaml", "pkg/component/vpnseedserver/testdata/objects.yaml",
		"pkg/component/clusterautoscaler/testdata/deployment-defaults.yaml",
		"extensions/pkg/worker/testdata/manager.yaml", "extensions/provider-local/pkg/machine/testdata/pod.yaml")
	update := cpuIn(t, apiServerFile)
	sum := once + (withNodes+withoutNodes)*(each+update) + withNodes*nodes
	t.Logf("%dm once, %dm for each control plane, %dm more for one with a node, %dm while it is updated: %dm of %dm",
		once, each, nodes, update, sum, nodeCPU)
	if sum > nodeCPU {
		t.Errorf("%dm of CPU are requested, and a node has %dm", sum, nodeCPU)
	}
	if etcd, server, controllers := cpuIn(t, etcdFile), cpuIn(t, apiServerFile),
		cpuIn(t, controllerFile); server < 5*controllers || etcd < 3*controllers {
		t.Errorf("kube-apiserver requests %dm, etcd-main %dm, and kube-controller-manager %dm", server, etcd,
			controllers)
	}
}
