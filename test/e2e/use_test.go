//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// A user of member1 runs a pod and reaches it by logs, exec and port-forward, all of which cross the VPN.
func useShoot(t *testing.T) {
	l := open(t)
	l.waitForShoot(t, "member1", "", 5*time.Minute)
	m1 := l.shoot(t, "member1")

	m1.eventually(t, time.Minute, contains(" Ready ", "v1.36.3", "containerd://2."), "get", "nodes", "-o", "wide",
		"--no-headers")
	t.Cleanup(func() { _, _ = m1.try(context.Background(), "", "delete", "pod", "web", "--ignore-not-found", "--now") })
	m1.run(t, "run", "web", "--image=nginx", "--port=80")
	m1.run(t, "wait", "--for=condition=Ready", "pod/web", "--timeout=90s")
	m1.eventually(t, 30*time.Second, contains("nginx"), "exec", "web", "--", "cat", "/etc/nginx/nginx.conf")

	body, err := getThroughPortForward(t, m1, "pod/web", 80)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(body, "nginx") {
		t.Errorf("the page of nginx: %s", body)
	}
	m1.eventually(t, 30*time.Second, contains("GET / "), "logs", "web")

	t.Run("in-cluster clients reach kubernetes.default", func(t *testing.T) {
		script :=
			`wget -q -O - --no-check-certificate --header "Authorization: Bearer $(cat /var/run/secrets/kubernetes.io/serviceaccount/token)" https://kubernetes.default.svc/version`
		m1.eventually(t, time.Minute, contains("gitVersion"), "exec", "web", "--", "sh", "-c", script)
	})
	t.Run("services have names", func(t *testing.T) {
		m1.eventually(t, time.Minute, contains("kubernetes.default.svc.cluster.local"), "exec", "web", "--", "nslookup",
			"kubernetes.default.svc.cluster.local")
	})
	t.Run("containers mount images, as users of their own", func(t *testing.T) { runWithImageVolume(t, m1) })
}

// runWithImageVolume needs a container runtime that mounts images, and maps their owners for a pod with users of its
// own.
func runWithImageVolume(t *testing.T, k kubectl) {
	t.Cleanup(func() {
		_, _ = k.try(context.Background(), "", "delete", "pod", "image-volume", "--ignore-not-found", "--now")
	})
	k.apply(t, `
apiVersion: v1
kind: Pod
metadata: {name: image-volume, namespace: default}
spec:
  hostUsers: false
  containers:
  - name: reader
    image: nginx
    volumeMounts: [{name: other, mountPath: /other, readOnly: true}]
  volumes:
  - name: other
    image: {reference: "registry.k8s.io/pause:3.10"}
`)
	k.run(t, "wait", "--for=condition=Ready", "pod/image-volume", "--timeout=90s")
	k.eventually(t, 30*time.Second, contains("pause"), "exec", "image-volume", "--", "ls", "/other")
	read := []string{"exec", "image-volume", "--", "cat", "/proc/self/uid_map"}
	users := strings.Fields(k.eventually(t, 30*time.Second, contains("0"), read...))
	if len(users) < 3 || users[0] != "0" || users[1] == "0" {
		t.Errorf("root of the pod must be another user of the node: %q", users)
	}
}

func getThroughPortForward(t *testing.T, k kubectl, target string, port int) (string, error) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	local := listener.Addr().(*net.TCPAddr).Port
	listener.Close()
	command := exec.CommandContext(t.Context(), k.l.bin("kubectl"), "--kubeconfig", k.kubeconfig, "port-forward",
		target, fmt.Sprintf("%d:%d", local, port))
	out, err := command.StdoutPipe()
	if err != nil {
		return "", err
	}
	if err := command.Start(); err != nil {
		return "", err
	}
	defer func() { _ = command.Process.Kill(); _ = command.Wait() }()
	first := make([]byte, 256)
	if _, err := out.Read(first); err != nil {
		return "", fmt.Errorf("port-forward did not start: %w", err)
	}
	response, err := http.Get(fmt.Sprintf("http://127.0.0.1:%d/", local))
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	return string(body), err
}

// The command line client lists what there is and says what to do about mistakes.
func TestTrellisctl(t *testing.T) {
	l := open(t)
	out, err := l.command(t.Context(), "", "trellisctl", "ls")
	if err != nil {
		t.Fatal(err)
	}
	if err := contains("demo", "member1", "member2", "fleet", "local")(out); err != nil {
		t.Error(err)
	}
	out, err = l.command(t.Context(), "", "trellisctl", "show", "--garden", l.name, "--project", "demo", "--shoot",
		"member1")
	if err != nil {
		t.Fatal(err)
	}
	if err := contains("etcd-main-0", "etcd-events-0", "kube-apiserver", "kube-controller-manager", "kube-scheduler",
		"machine-controller-manager", "vpn-seed-server")(out); err != nil {
		t.Error(err)
	}
	for _, line := range []string{
		"describe shoot member1 --project demo", "describe project demo", "describe seed local", "ls shoots -o yaml",
	} {
		out, err := l.command(t.Context(), "", "trellisctl", append(strings.Fields(line), "--garden", l.name)...)
		if err != nil || out == "" {
			t.Errorf("trellisctl %s: %q, %v", line, out, err)
		}
	}
	if _, err := l.command(t.Context(), "", "trellisctl", "kubeconfig", "--garden", l.name, "--project", "demo",
		"--shoot", "nosuch"); err == nil || !strings.Contains(err.Error(), "trellisctl ls shoots") {
		t.Errorf("want an error that says what to do next, got %v", err)
	}
}

// A target is remembered for the terminal, kubectl-env points kubectl at it, and the client is kubectl's plugin too.
func TestTrellisctlTarget(t *testing.T) {
	l := open(t)
	t.Setenv("TRELLISCTL_SESSION_ID", fmt.Sprintf("e2e-%d", os.Getpid()))
	t.Cleanup(func() { _, _ = l.command(context.Background(), "", "trellisctl", "target", "unset") })
	if _, err := l.command(t.Context(), "", "trellisctl", "target", "--garden", l.name, "--project", "demo", "--shoot",
		"member1"); err != nil {
		t.Fatal(err)
	}
	out, err := l.command(t.Context(), "", "trellisctl", "target", "view")
	if err != nil || contains("project/demo", "shoot/member1")(out) != nil {
		t.Errorf("target view: %q, %v", out, err)
	}
	script, err := l.command(t.Context(), "", "trellisctl", "kubectl-env", "bash")
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", l.bin("")+string(os.PathListSeparator)+os.Getenv("PATH"))
	// Who overrides the server has to tell its name.
	const command = `
cluster() { kubectl config view --minify -o jsonpath="{.clusters[0].cluster.$1}"; }
kubectl --server "$(cluster server)" --tls-server-name "$(cluster tls-server-name)" get nodes --no-headers`
	nodes, err := exec.CommandContext(t.Context(), "bash", "-euc", script+command).CombinedOutput()
	if err != nil || contains(" Ready ")(string(nodes)) != nil {
		t.Errorf("kubectl after kubectl-env: %s, %v", nodes, err)
	}
	out, err = l.command(t.Context(), "", "kubectl", "trellis", "show")
	if err != nil || contains("etcd-main-0")(out) != nil {
		t.Errorf("kubectl trellis show: %s, %v", out, err)
	}
	out, err = l.command(t.Context(), "", "trellisctl", "completion", "bash")
	if err != nil || contains("complete")(out) != nil {
		t.Errorf("completion: %v", err)
	}
}
