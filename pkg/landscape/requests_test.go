package landscape

import (
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
	paths := []string{"pkg/landscape/files/system/coredns.yaml"}
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

// gardenPods deploys the components of the garden, and returns their pods by the names of their workloads.
func gardenPods(t *testing.T) map[string]corev1.PodSpec {
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
	references := map[string]string{
		"etcd-steward": "etcd-steward:v1", "kube-apiserver": "kube-apiserver:v1", "kube-controller-manager": "kcm:v1",
	}
	first, second := gardenParts(c, manager, encryption.Record{}.Stage, "1.36.3", references)
	for _, part := range append(first, second...) {
		if err := part.Deploy(t.Context()); err != nil {
			t.Fatalf("%s: %v", part.name, err)
		}
	}
	pods := map[string]corev1.PodSpec{}
	sets, deployments := &appsv1.StatefulSetList{}, &appsv1.DeploymentList{}
	for _, list := range []client.ObjectList{sets, deployments} {
		if err := c.List(t.Context(), list, client.InNamespace(gardenNS)); err != nil {
			t.Fatal(err)
		}
	}
	for _, set := range sets.Items {
		pods[set.Name] = set.Spec.Template.Spec
	}
	for _, deployment := range deployments.Items {
		pods[deployment.Name] = deployment.Spec.Template.Spec
	}
	return pods
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
	pods := gardenPods(t)
	for name, want := range map[string]struct {
		class string
		least int64
	}{
		"etcd-main":               {component.PriorityGardenSystem500, 2 * cpuIn(t, etcdFile)},
		"etcd-events":             {component.PriorityGardenSystem500, 1},
		"kube-apiserver":          {component.PriorityGardenSystem500, 2 * cpuIn(t, apiServerFile)},
		"kube-controller-manager": {component.PriorityGardenSystem300, 1},
	} {
		if pod := pods[name]; pod.PriorityClassName != want.class || cpuOf(pod) < want.least {
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
)

// A machine with two cores has room for 15 control planes with three nodes, beside all that a landscape has once, and
// for a second kube-apiserver of each while they are updated: for want of it, pods would take the place of others.
func TestRequestsFitTheNode(t *testing.T) {
	once := cpuIn(t, runtimeFiles(t)...) + cpuIn(t, extensionFiles(t)...) + cpuIn(t,
		"charts/gateway/values.yaml", "charts/garden/values.yaml", "charts/gardenlet/values.yaml",
		"charts/resource-manager/values.yaml", "pkg/component/egress/testdata/objects.yaml",
		"extensions/federation/pkg/fleet/testdata/deployment.yaml")
	for _, pod := range gardenPods(t) {
		once += cpuOf(pod)
	}
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
