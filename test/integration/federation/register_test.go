package federation

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	clusterv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/cluster/v1alpha1"
	"github.com/trellis-garden/trellis/pkg/federation/registration"
	"github.com/trellis-garden/trellis/pkg/trellisctl"
)

// kubeconfigFile writes what people have.
func kubeconfigFile(t *testing.T, config *rest.Config) string {
	t.Helper()
	kubeconfig := clientcmdapi.NewConfig()
	kubeconfig.Clusters["c"] = &clientcmdapi.Cluster{
		Server: config.Host, CertificateAuthorityData: config.CAData, InsecureSkipTLSVerify: config.Insecure,
	}
	kubeconfig.AuthInfos["c"] = &clientcmdapi.AuthInfo{Token: config.BearerToken}
	kubeconfig.Contexts["c"] = &clientcmdapi.Context{Cluster: "c", AuthInfo: "c"}
	kubeconfig.CurrentContext = "c"
	path := filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*kubeconfig, path); err != nil {
		t.Fatal(err)
	}
	return path
}

// command runs trellisctl and gives what it prints.
func command(t *testing.T, arguments ...string) (string, error) {
	t.Helper()
	var out, progress bytes.Buffer
	root := trellisctl.NewCommand()
	root.SetArgs(arguments)
	root.SetOut(&out)
	root.SetErr(&progress)
	err := root.ExecuteContext(ctx)
	t.Logf("trellisctl %s: %v\n%s", strings.Join(arguments, " "), err, progress.String())
	return out.String(), err
}

// What the documentation tells people to type makes a cluster a member, and lets it leave.
func TestRegisterByCommands(t *testing.T) {
	w := newWorld(t)
	w.startFederation(t)
	w.servers.startControllers(t, w.fleetConfig, "certificatesigningrequest-signing-controller",
		"garbage-collector-controller")
	config, member := w.startCluster(t, "commanded")
	access := "--fleet-kubeconfig=" + kubeconfigFile(t, w.pinnedFleet(t))
	run := func(arguments ...string) string {
		t.Helper()
		out, err := command(t, append(arguments, access)...)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}

	manifest := run("register", "commanded", "--region=north", "--image=registry.example/federation:v1")
	objects := parse(t, manifest)
	if last := objects[len(objects)-1]; last.GetKind() != "Deployment" ||
		!strings.Contains(manifest, "registry.example/federation:v1") {
		t.Errorf("got\n%s", manifest)
	}
	for flags, serves := range map[string]bool{
		"": true, "--serve-api=false": false, "--allow-kinds=ConfigMap": false, "--allow-namespaces=shop": false,
		"--allow-namespaces=shop --serve-api": true,
	} {
		text := run(append([]string{"register", "commanded", "--image=i"}, strings.Fields(flags)...)...)
		if strings.Contains(text, "name: impersonator\n") != serves {
			t.Errorf("with %q, got\n%s", flags, text)
		}
	}
	if _, err := command(t, "accept", "commanded", access); err == nil ||
		!strings.Contains(err.Error(), "trellisctl register commanded") {
		t.Errorf("nobody waits yet: got %v", err)
	}
	if out := run("register", "commanded", "--kubeconfig="+kubeconfigFile(t, config)); out != "" {
		t.Errorf("the manifest is applied and not printed: got %s", out)
	}
	p := &pulled{
		world: w, name: "commanded", member: member, invitation: &registration.Invitation{Access: objects[0].GetName()},
	}
	p.configure(t, config, registration.Allowance{})
	_, ended := p.start(t)
	fingerprint := p.waiting(t)[0].Fingerprint
	if out := run("accept", "--output=wide"); !strings.Contains(out, fingerprint) ||
		!strings.Contains(out, "commanded") {
		t.Errorf("got %s", out)
	}
	if out := run("accept", "commanded", "--key="+fingerprint[:10]); !strings.Contains(out, fingerprint) {
		t.Errorf("got %s", out)
	}
	if cluster := w.ready(t, p.name, metav1.ConditionTrue, "ClusterReady"); cluster.Spec.Region != "north" ||
		cluster.Spec.SyncMode != clusterv1alpha1.Pull {
		t.Errorf("got %+v", cluster.Spec)
	}
	if out := run("members", "-o", "wide"); !strings.Contains(out, "commanded") || !strings.Contains(out, "Pull") {
		t.Errorf("got %s", out)
	}
	run("unjoin", "commanded")
	w.finalizeNamespace(t, clusterv1alpha1.ExecutionNamespace(p.name))
	if err := <-ended; err != nil {
		t.Errorf("the agent ended with %v", err)
	}
}
