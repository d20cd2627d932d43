package trellisctl

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
)

// withAPI is a shoot that has an address, and the ConfigMap with its authority.
func withAPI(namespace, name string) []client.Object {
	s := shoot(namespace, name, "local")
	s.Status.AdvertisedAddresses = []gardencorev1beta1.ShootAdvertisedAddress{
		{Name: "service-account-issuer", URL: "https://issuer.example"},
		{Name: "internal", URL: "https://internal." + name + ".example"},
		{Name: "external", URL: "https://" + name + ".example/"},
	}
	return []client.Object{s, &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name + ".ca-cluster"},
		Data:       map[string]string{"ca.crt": "authority of " + name},
	}}
}

func testPlugin() plugin {
	return plugin{"/bin/trellisctl", "/etc/trellisctl.yaml", "local", AccessAuto, time.Hour}
}

// written is what kubectl reads.
func written(t *testing.T, kubeconfig *clientcmdapi.Config) *clientcmdapi.Config {
	t.Helper()
	text, err := clientcmd.Write(*kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	read, err := clientcmd.Load(text)
	if err != nil {
		t.Fatal(err)
	}
	return read
}

func TestKubeconfigOfOneShootHasNoCredentials(t *testing.T) {
	s := session(t, Target{Project: "demo", Shoot: "one"}, interceptor.Funcs{}, withAPI("garden-demo", "one")...)
	s.garden.Identity = "landscape-local"
	found, err := s.Shoot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	got, err := s.kubeconfigOfOne(t.Context(), found, testPlugin())
	if err != nil {
		t.Fatal(err)
	}
	got = written(t, got)
	cluster, user := got.Clusters["local/demo/one"], got.AuthInfos["local/auto"]
	if got.CurrentContext != "local/demo/one" || cluster == nil || user == nil || user.Exec == nil {
		t.Fatalf("got %+v", got)
	}
	if cluster.Server != "https://one.example" || string(cluster.CertificateAuthorityData) != "authority of one" {
		t.Errorf("got %+v", cluster)
	}
	want := []string{
		"credential", "--config=/etc/trellisctl.yaml", "--garden=local", "--access-level=auto", "--expiration=1h0m0s",
	}
	if user.Exec.Command != "/bin/trellisctl" || !slices.Equal(user.Exec.Args, want) ||
		!user.Exec.ProvideClusterInfo || user.Exec.InteractiveMode != "IfAvailable" ||
		user.Exec.APIVersion != "client.authentication.k8s.io/v1" {
		t.Errorf("got %+v", user.Exec)
	}
	if len(user.ClientKeyData)+len(user.Token) > 0 {
		t.Error("the kubeconfig has credentials")
	}
	asked := toldToThePlugin(t, got, "local/demo/one")
	if asked.ShootRef != (shootRef{"garden-demo", "one"}) || asked.GardenClusterIdentity != "landscape-local" ||
		string(asked.authority) != "authority of one" {
		t.Errorf("got %+v", asked)
	}
}

// toldToThePlugin is what reaches the plugin of a context, by the way that client-go goes.
func toldToThePlugin(t *testing.T, kubeconfig *clientcmdapi.Config, name string) askedCluster {
	t.Helper()
	config, err := clientcmd.NewNonInteractiveClientConfig(*kubeconfig, name, nil, nil).ClientConfig()
	if err != nil {
		t.Fatal(err)
	}
	cluster, err := rest.ConfigToExecCluster(config)
	if err != nil {
		t.Fatal(err)
	}
	told, err := json.Marshal(cluster.Config)
	if err != nil {
		t.Fatal(err)
	}
	authority, err := json.Marshal(cluster.CertificateAuthorityData)
	if err != nil {
		t.Fatal(err)
	}
	asked, err := askedFor(fmt.Sprintf(`{"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential",
		"spec":{"cluster":{"server":%q,"certificate-authority-data":%s,"config":%s}}}`, cluster.Server, authority, told))
	if err != nil {
		t.Fatal(err)
	}
	return asked
}

// Shoots of the same name, and projects and shoots whose names could be read in two ways, have contexts of their own.
func TestKubeconfigOfAllShoots(t *testing.T) {
	var objects []client.Object
	for _, key := range [][2]string{
		{"garden-demo", "one"}, {"garden-demo", "two"}, {"garden-other", "one"}, {"stray", "one"}, {"demo", "one"},
	} {
		objects = append(objects, withAPI(key[0], key[1])...)
	}
	objects = append(objects, shoot("garden-demo", "young", ""))
	withoutCA := withAPI("garden-demo", "younger")
	objects = append(objects, withoutCA[0])
	for name, test := range map[string]struct {
		target Target
		all    bool
		want   []string
	}{
		"of a project": {
			Target{Project: "demo", Shoot: "remembered"}, false, []string{"local/demo/one", "local/demo/two"},
		},
		"of all": {
			Target{}, true, []string{
				"local/demo/one", "local/demo/two", "local/namespace:demo/one", "local/namespace:stray/one",
				"local/other/one",
			},
		},
	} {
		var said []string
		tell := func(format string, values ...any) { said = append(said, fmt.Sprintf(format, values...)) }
		s := session(t, test.target, interceptor.Funcs{}, objects...)
		got, err := s.kubeconfigOfAll(t.Context(), test.all, testPlugin(), tell)
		if err != nil {
			t.Fatal(err)
		}
		got = written(t, got)
		var names []string
		for name := range got.Contexts {
			names = append(names, name)
			if asked := toldToThePlugin(t, got, name); !strings.HasSuffix(name, "/"+asked.ShootRef.Name) {
				t.Errorf("%s leads to %+v", name, asked.ShootRef)
			}
		}
		slices.Sort(names)
		check(t, name, names, test.want)
		slices.Sort(said)
		check(t, name+": left out", said, []string{
			"left out: shoot garden-demo/young: " + errNoAPIYet.Error(),
			"left out: shoot garden-demo/younger: " + errNoAPIYet.Error(),
		})
		if got.CurrentContext != "" || len(got.AuthInfos) != 1 {
			t.Errorf("%s: current context %q, %d users", name, got.CurrentContext, len(got.AuthInfos))
		}
	}
}

// What may not be read is left out; what fails otherwise ends the command.
func TestShootsThatCannotBeInTheFile(t *testing.T) {
	failing := func(err error) interceptor.Funcs {
		return interceptor.Funcs{Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey,
			object client.Object, options ...client.GetOption) error {
			if key.Name == "two.ca-cluster" {
				return err
			}
			return c.Get(ctx, key, object, options...)
		}}
	}
	objects := slices.Concat(withAPI("garden-demo", "one"), withAPI("garden-demo", "two"))
	resource := schema.GroupResource{Resource: "configmaps"}
	for name, test := range map[string]struct {
		err  error
		want string
	}{
		"forbidden": {apierrors.NewForbidden(resource, "two.ca-cluster", nil), ""},
		"broken": {
			apierrors.NewInternalError(fmt.Errorf("broken")),
			"its certificate authority, ConfigMap garden-demo/two.ca-cluster",
		},
	} {
		got, err := session(t, Target{Project: "demo"}, failing(test.err), objects...).kubeconfigOfAll(t.Context(), false,
			testPlugin(), func(string, ...any) {})
		switch {
		case err != nil && (test.want == "" || !strings.Contains(err.Error(), test.want)):
			t.Errorf("%s: got %v", name, err)
		case err == nil && (test.want != "" || len(got.Contexts) != 1):
			t.Errorf("%s: got %+v", name, got)
		}
	}
	_, err := session(t, Target{}, interceptor.Funcs{}).kubeconfigOfAll(t.Context(), false, testPlugin(), nil)
	if err == nil || !strings.Contains(err.Error(), "--project NAME, or -A") {
		t.Errorf("got %v", err)
	}
	_, err = session(t, Target{}, interceptor.Funcs{}).kubeconfigOfAll(t.Context(), true, testPlugin(), nil)
	if err == nil || !strings.Contains(err.Error(), "no shoots with an API") {
		t.Errorf("got %v", err)
	}
}
