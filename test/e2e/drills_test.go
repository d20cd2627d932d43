//go:build e2e

package e2e

import (
	"context"
	"testing"
	"time"
)

// Commands below this heading of docs/operating.md lose the volume of member1's etcd.
const lostVolume = "### Drill: the volume of an etcd is lost"

// The objects of a cluster outlive the volume that they are on. Its pods run on meanwhile, and are reached by others.
func etcdLosesItsVolume(t *testing.T) {
	l := open(t)
	l.waitForShoot(t, "member1", "", 5*time.Minute)
	m1 := l.shoot(t, "member1")
	t.Cleanup(func() {
		_, _ = m1.try(context.Background(), "", "delete", "pod/bystander", "configmap/before-the-loss",
			"--ignore-not-found", "--now")
	})
	m1.apply(t, `
apiVersion: v1
kind: Pod
metadata: {name: bystander, namespace: default}
spec: {containers: [{name: nginx, image: nginx}]}
`)
	m1.run(t, "wait", "--for=condition=Ready", "pod/bystander", "--timeout=90s")
	started := m1.run(t, "get", "pod", "bystander", "-o", "jsonpath={.metadata.uid} {.status.startTime}")
	web := l.probeWeb(t, "member1", "pool", m1)
	m1.run(t, "create", "configmap", "before-the-loss")
	volume := l.volumeOfEtcd(t, "shoot--demo--member1")
	l.drill(t, lostVolume)
	if now := l.volumeOfEtcd(t, "shoot--demo--member1"); now == volume {
		t.Fatalf("etcd has the volume %s still", volume)
	}
	m1.eventually(t, 2*time.Minute, contains("before-the-loss"), "get", "configmap", "before-the-loss")
	// The Shoot tells of it, in the garden.
	garden := l.gardenKubectl()
	garden.eventually(t, 2*time.Minute, contains("etcd-main found no data"), "-n", "garden-demo", "get",
		"shoot", "member1", "-o", `jsonpath={.status.conditions[?(@.type=="ControlPlaneHealthy")].message}`)
	garden.eventually(t, 2*time.Minute, contains("etcd-main found no data"), "-n", "garden-demo", "get",
		"events", "--field-selector", "reason=EtcdRecovered,involvedObject.name=member1")
	garden.eventually(t, 2*time.Minute, contains("ChangesSaved"), "-n", "garden-demo", "get",
		"shoot", "member1", "-o", `jsonpath={.status.conditions[?(@.type=="EtcdBackupReady")].reason}`)
	// What is new reaches those that watch.
	m1.eventually(t, 2*time.Minute, contains("created"), "create", "configmap", "after-the-loss")
	m1.eventually(t, 2*time.Minute, contains("nginx"), "exec", "bystander", "--", "cat", "/etc/nginx/nginx.conf")
	m1.run(t, "delete", "configmap", "after-the-loss")
	m1.eventually(t, time.Minute, contains(" Ready "), "get", "nodes", "--no-headers")
	m1.eventually(t, time.Minute, equals(started), "get", "pod", "bystander", "-o",
		"jsonpath={.metadata.uid} {.status.startTime}")
	web.stop(t, m1).allAnswered(t, "web server, while etcd lost its volume")
}

// volumeOfEtcd is the one that etcd-main of a namespace has.
func (l *landscape) volumeOfEtcd(t *testing.T, namespace string) string {
	t.Helper()
	return l.runtimeKubectl().run(t, "-n", namespace, "get", "pvc", "main-etcd-etcd-main-0", "-o",
		"jsonpath={.spec.volumeName}")
}
