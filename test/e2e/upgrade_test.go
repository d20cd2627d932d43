//go:build e2e && upgrade

package e2e

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"
)

// The versions between which a shoot is upgraded.
const (
	olderVersion = "1.35.4"
	newerVersion = "1.36.3"
)

// apiOutage is how long a single kube-apiserver may be away while it is replaced.
const apiOutage = 20 * time.Second

// A shoot is upgraded to the next minor version of Kubernetes: the control plane, with the pool that follows it, then
// the pool that has a version of its own, and never both. What runs with two replicas and a disruption budget answers
// all requests meanwhile.
func TestUpgrade(t *testing.T) {
	l := open(t)
	l.explainShoot(t, "older")
	l.gardenKubectl().apply(t, shootOfTwoPools(t))
	l.waitForShoot(t, "older", "Create", 10*time.Minute)
	shoot := l.shoot(t, "older")
	shoot.eventually(t, time.Minute, equals(olderVersion+" "+olderVersion+" "+olderVersion), versionsOfNodes("")...)
	shoot.apply(t, webServer)
	shoot.run(t, "rollout", "status", "deployment/web", "--timeout=3m")
	shoot.apply(t, webProber)
	shoot.run(t, "rollout", "status", "deployment/prober", "--timeout=3m")

	api := probeAPI(t, shoot)
	l.setVersion(t, "/spec/kubernetes/version", newerVersion)
	l.waitForShoot(t, "older", "Reconcile", 20*time.Minute)
	shoot.eventually(t, time.Minute, equals(newerVersion+" "+newerVersion), versionsOfNodes("work")...)
	shoot.eventually(t, time.Minute, equals(olderVersion), versionsOfNodes("probe")...)
	shoot.eventually(t, time.Minute, contains(newerVersion), "version")
	probes := api.stop()
	t.Logf("kube-apiserver: %s", probes)
	if probes.longest > apiOutage {
		t.Errorf("kube-apiserver was away for %s, more than %s", probes.longest, apiOutage)
	}
	web := shoot.run(t, "logs", "deployment/prober", "--tail=-1")
	t.Logf("web server: %s", web)
	if strings.Contains(web, "failed") || !strings.Contains(web, "answered") {
		t.Error("the web server did not answer all requests")
	}

	l.setVersion(t, "/spec/provider/workers/1/kubernetes/version", newerVersion)
	l.waitForShoot(t, "older", "Reconcile", 10*time.Minute)
	shoot.eventually(t, time.Minute, equals(newerVersion+" "+newerVersion+" "+newerVersion), versionsOfNodes("")...)
	l.deleteShoot(t, "older")
}

// A Shoot goes back to no version, and past none.
func TestUpgradesThatAreRefused(t *testing.T) {
	l := open(t)
	for version, reason := range map[string]string{olderVersion: "spec.kubernetes.version", "1.99.0": "1.99.0"} {
		patch := fmt.Sprintf(`{"spec":{"kubernetes":{"version":%q}}}`, version)
		if _, err := l.gardenKubectl().try(t.Context(), "", "-n", "garden-demo", "patch", "shoot", "member1",
			"--type=merge", "-p", patch); err == nil || !strings.Contains(err.Error(), reason) {
			t.Errorf("to %s: got %v, want an error with %s", version, err, reason)
		}
	}
}

func (l *landscape) setVersion(t *testing.T, path, version string) {
	t.Helper()
	patch := fmt.Sprintf(`[{"op": "replace", "path": %q, "value": %q}]`, path, version)
	l.gardenKubectl().run(t, "-n", "garden-demo", "patch", "shoot", "older", "--type=json", "-p", patch)
}

// versionsOfNodes are arguments of kubectl that print the kubelets' versions of a pool, or of all, in order.
func versionsOfNodes(pool string) []string {
	arguments := []string{
		"get", "nodes", "--sort-by=.status.nodeInfo.kubeletVersion", "-o",
		`go-template={{range .items}}{{slice .status.nodeInfo.kubeletVersion 1}} {{end}}`,
	}
	if pool != "" {
		arguments = append(arguments, "-l", "worker.gardener.cloud/pool="+pool)
	}
	return arguments
}

// shootOfTwoPools has the older version; one of its pools says so itself.
func shootOfTwoPools(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("testdata/shoot-older.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// webServer ends only when it is out of the Service's endpoints, as a pod should.
const webServer = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: default}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      nodeSelector: {worker.gardener.cloud/pool: work}
      topologySpreadConstraints:
      - maxSkew: 1
        topologyKey: kubernetes.io/hostname
        whenUnsatisfiable: ScheduleAnyway
        labelSelector: {matchLabels: {app: web}}
      terminationGracePeriodSeconds: 30
      containers:
      - name: nginx
        image: nginx
        ports: [{containerPort: 80}]
        readinessProbe: {httpGet: {path: /, port: 80}, periodSeconds: 1}
        lifecycle: {preStop: {sleep: {seconds: 15}}}
---
apiVersion: v1
kind: Service
metadata: {name: web, namespace: default}
spec:
  selector: {app: web}
  ports: [{port: 80}]
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: web, namespace: default}
spec:
  minAvailable: 1
  selector: {matchLabels: {app: web}}
`

// webProber asks the web server ten times a second, from the pool that stays as it is.
const webProber = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: prober, namespace: default}
spec:
  replicas: 1
  selector: {matchLabels: {app: prober}}
  template:
    metadata: {labels: {app: prober}}
    spec:
      nodeSelector: {worker.gardener.cloud/pool: probe}
      containers:
      - name: prober
        image: nginx
        command: [sh, -c]
        args:
        - |
          n=0
          while true; do
            n=$((n+1))
            timeout 2 wget -q -O /dev/null http://$WEB_SERVICE_HOST/ || echo "$(date +%T) request $n failed"
            [ $((n % 600)) -ne 0 ] || echo "$(date +%T) $n requests were answered or are told of above"
            sleep 0.1
          done
`
