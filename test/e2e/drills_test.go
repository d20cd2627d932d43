//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// Commands below these headings of docs/operating.md lose the volume of member1's etcd, and restore what it had.
const (
	lostVolume  = "### Drill: the volume of an etcd is lost"
	pointInTime = "### Drill: back to a point in time"
)

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

// What was written after a point in time is gone, what was written before is there, and pods that were there are
// reached by others all the while.
func etcdGoesBackToAPointInTime(t *testing.T) {
	l := open(t)
	l.waitForShoot(t, "member1", "", 5*time.Minute)
	l.explainShoot(t, "member1")
	m1 := l.shoot(t, "member1")
	t.Cleanup(func() {
		_, _ = m1.try(context.Background(), "", "delete", "configmap", "kept", "regretted", "--ignore-not-found")
	})
	web := l.probeWeb(t, "member1", "pool", m1)
	m1.run(t, "create", "configmap", "kept")
	saved := l.waitForBackup(t, "shoot--demo--member1")
	m1.run(t, "create", "configmap", "regretted")
	l.drill(t, pointInTime, "GARDEN="+l.garden(), "TO="+saved.UTC().Format(time.RFC3339))
	m1.eventually(t, 2*time.Minute, contains("kept"), "get", "configmap", "kept")
	m1.eventually(t, time.Minute, equals(""), "get", "configmap", "regretted", "--ignore-not-found", "-o", "name")
	m1.eventually(t, 2*time.Minute, contains(" Ready "), "get", "nodes", "--no-headers")
	m1.eventually(t, time.Minute, contains("created"), "create", "configmap", "regretted")
	web.stop(t, m1).allAnswered(t, "web server, while etcd went back to a point in time")
}

// waitForBackup waits until the store has all that etcd-main of a namespace was told until now, and returns until when
// it has that.
func (l *landscape) waitForBackup(t *testing.T, namespace string) (saved time.Time) {
	t.Helper()
	written := time.Now()
	eventually(t, 3*time.Minute, func(ctx context.Context) (err error) {
		if saved, err = l.newestBackup(ctx, namespace); err == nil && !saved.After(written.Add(time.Second)) {
			err = fmt.Errorf("all until %s is saved, want %s", saved, written)
		}
		return err
	})
	return saved
}

// newestBackup is until when the store has what etcd-main of a namespace was told.
func (l *landscape) newestBackup(ctx context.Context, namespace string) (time.Time, error) {
	inPod := []string{"-n", namespace}
	seed := l.runtimeKubectl()
	arguments, err := seed.try(ctx, "", append(inPod, "get", "pod", "etcd-main-0", "-o",
		"jsonpath={.spec.containers[0].args[*]}")...)
	if err != nil {
		return time.Time{}, err
	}
	command := append(inPod, "exec", "etcd-main-0", "-c", "etcd", "--", "/usr/local/bin/etcd-steward", "restorable")
	out, err := seed.try(ctx, "", append(command, strings.Fields(arguments)...)...)
	if err != nil {
		return time.Time{}, err
	}
	fields := strings.Fields(out)
	if len(fields) < 2 {
		return time.Time{}, fmt.Errorf("the store has nothing to restore: %q", out)
	}
	return time.Parse(time.RFC3339, fields[1])
}

// volumeOfEtcd is the one that etcd-main of a namespace has.
func (l *landscape) volumeOfEtcd(t *testing.T, namespace string) string {
	t.Helper()
	return l.runtimeKubectl().run(t, "-n", namespace, "get", "pvc", "main-etcd-etcd-main-0", "-o",
		"jsonpath={.spec.volumeName}")
}

// drill runs the commands below a heading of docs/operating.md, as they are written there, against the seed, with more
// variables in their environment.
func (l *landscape) drill(t *testing.T, heading string, environment ...string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(l.root, "docs/operating.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, section, found := strings.Cut(string(text), heading+"\n")
	if !found {
		t.Fatalf("docs/operating.md has no heading %q", heading)
	}
	section, _, _ = strings.Cut(section, "\n#")
	var script []string
	for line := range strings.Lines(section) {
		if command, indented := strings.CutPrefix(line, "    "); indented {
			script = append(script, command)
		}
	}
	if len(script) == 0 {
		t.Fatalf("docs/operating.md has no commands below %q", heading)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	command := exec.CommandContext(ctx, "bash", "-euo", "pipefail", "-c", strings.Join(script, ""))
	command.Dir = l.root
	command.Env = append(append(os.Environ(), "PATH="+filepath.Join(l.root, "bin")+":"+os.Getenv("PATH"),
		"KUBECONFIG="+l.runtime()), environment...)
	out, err := command.CombinedOutput()
	if err != nil {
		t.Fatalf("the commands below %q: %v\n%s", heading, err, out)
	}
	t.Logf("%s:\n%s", heading, out)
}
