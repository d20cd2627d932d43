//go:build e2e && outage

package e2e

import (
	"context"
	"flag"
	"fmt"
	"strings"
	"testing"
	"time"
)

var outage = flag.Duration("outage", 30*time.Minute, "how long the seed is away")

// A seed is away: nothing of a control plane runs there, and no gardenlet cares for it. In the shoot all goes on. No
// pod is moved or started again, no node is replaced, and a web server answers all requests, also when the seed is
// back.
func TestASeedIsAway(t *testing.T) {
	l := open(t)
	const name, namespace = "member1", "shoot--demo--member1"
	garden, seed, shoot := l.gardenKubectl(), l.runtimeKubectl(), l.shoot(t, name)
	l.explainShoot(t, name)
	pool := garden.run(t, "-n", "garden-demo", "get", "shoot", name, "-o",
		"jsonpath={.spec.provider.workers[0].name}")
	web := l.probeWeb(t, name, pool, shoot)
	before := runningIn(t, shoot, seed, namespace)

	gardenlet := replicasOf(t, seed, "garden", "deployment/gardenlet")
	controlPlane := replicasOf(t, seed, namespace, strings.Fields(seed.run(t, "-n", namespace, "get",
		"deployments,statefulsets", "-o", "name"))...)
	back := func() {
		controlPlane.scale(t, seed)
		gardenlet.scale(t, seed)
	}
	t.Cleanup(back)
	gardenlet.none().scale(t, seed)
	controlPlane.none().scale(t, seed)
	seed.eventually(t, 5*time.Minute, func(pods string) error {
		if strings.Contains(pods, "kube-apiserver") || strings.Contains(pods, "etcd") {
			return fmt.Errorf("still there: %s", pods)
		}
		return nil
	}, "-n", namespace, "get", "pods", "-o", "name")
	t.Logf("the seed is away for %s", *outage)
	select {
	case <-t.Context().Done():
	case <-time.After(*outage):
	}
	back()

	shoot = l.shoot(t, name) // A kubeconfig is good for an hour.
	shoot.eventually(t, 10*time.Minute, contains("ok"), "get", "--raw", "/readyz")
	for _, condition := range []string{"APIServerAvailable", "ControlPlaneHealthy", "EveryNodeReady"} {
		garden.eventually(t, 10*time.Minute, equals("True"), "-n", "garden-demo", "get", "shoot", name, "-o",
			conditionStatus(condition))
	}
	seed.eventually(t, 5*time.Minute, func(phases string) error {
		if phases = strings.ReplaceAll(phases, "Running", ""); strings.TrimSpace(phases) != "" {
			return fmt.Errorf("machines are %s", phases)
		}
		return nil
	}, "-n", namespace, "get", "machines.machine.sapcloud.io", "-o", "jsonpath={.items[*].status.currentStatus.phase}")
	if after := runningIn(t, shoot, seed, namespace); after != before {
		t.Errorf("before the outage there were\n%s\nand now there are\n%s", before, after)
	}
	web.stop(t, shoot).allAnswered(t, "the web server, while the seed was away")
}

// runningIn tells of the nodes, machines and pods of a shoot, and how often their containers were started again.
func runningIn(t *testing.T, shoot, seed kubectl, namespace string) string {
	t.Helper()
	return shoot.run(t, "get", "nodes", "-o",
		"go-template={{range .items}}{{.metadata.name}} {{.metadata.uid}}\n{{end}}") +
		seed.run(t, "-n", namespace, "get", "machines.machine.sapcloud.io", "-o", "name") +
		shoot.run(t, "get", "pods", "-A", "--field-selector=status.phase=Running", "-o",
			"go-template={{range .items}}{{.metadata.namespace}}/{{.metadata.name}} on {{.spec.nodeName}}:"+
				"{{range .status.containerStatuses}} {{.name}} started again {{.restartCount}} times{{end}}\n{{end}}")
}

// workloads are numbers of replicas by resource and name, in a namespace.
type workloads struct {
	namespace string
	replicas  map[string]string
}

func replicasOf(t *testing.T, k kubectl, namespace string, names ...string) workloads {
	t.Helper()
	w := workloads{namespace, map[string]string{}}
	for _, name := range names {
		w.replicas[name] = k.run(t, "-n", namespace, "get", name, "-o", "jsonpath={.spec.replicas}")
	}
	return w
}

// none are the same without replicas.
func (w workloads) none() workloads {
	none := workloads{w.namespace, map[string]string{}}
	for name := range w.replicas {
		none.replicas[name] = "0"
	}
	return none
}

func (w workloads) scale(t *testing.T, k kubectl) {
	t.Helper()
	for name, count := range w.replicas {
		if out, err := k.try(context.Background(), "", "-n", w.namespace, "scale", name,
			"--replicas="+count); err != nil {
			t.Errorf("%s: %v\n%s", name, err, out)
		}
	}
}
