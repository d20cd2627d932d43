package kubeapiserver

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	apiserverv1 "k8s.io/apiserver/pkg/apis/apiserver/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-garden/trellis/pkg/component"
	egresscomponent "github.com/trellis-garden/trellis/pkg/component/egress"
	"github.com/trellis-garden/trellis/pkg/component/golden"
	"github.com/trellis-garden/trellis/pkg/component/vpnseedserver"
	"github.com/trellis-garden/trellis/pkg/etcd/request"
	"github.com/trellis-garden/trellis/pkg/secrets"
)

const namespace = "shoot--demo--member1"

func shootValues() Values {
	return Values{
		Version: "1.36.3", Image: "registry.k8s.io/kube-apiserver:v1.36.3", Replicas: 1,
		ServiceNetworks:  []string{"10.4.0.0/16"},
		AdvertiseAddress: "240.0.0.1", ExternalHostnames: []string{"api.member1.demo.local.trellis.garden"},
		VPN:        &VPNValues{},
		EgressHost: "egress.garden.svc", AggregatorRouting: true,
	}
}

// pairValues are those of a control plane that outlasts the failure of a zone.
func pairValues() Values {
	values := shootValues()
	values.Replicas, values.Availability = component.Pair,
		component.Availability{Tolerance: gardencorev1beta1.FailureToleranceTypeZone}
	values.VPN.Paths, values.EgressImage = vpnseedserver.Proxies(values.Availability), "vpn:v1"
	return values
}

func TestObjects(t *testing.T) {
	mounted := mountedSecrets{
		pki: map[string]component.SecretFiles{
			"egress-client": {
				Secret: "kube-apiserver-egress-client-33333333", Files: map[string]string{"tls.crt": "tls.crt"},
			},
			"server": {Secret: "kube-apiserver-11111111", Files: map[string]string{"tls.crt": "tls.crt"}},
		},
		config: map[string]component.SecretFiles{
			"files": {Secret: "kube-apiserver-config-22222222", Files: map[string]string{"a.yaml": "a.yaml"}},
		},
	}
	for name, values := range map[string]Values{
		"shoot": shootValues(),
		"workerless": {
			Image: "kube-apiserver:v1", Replicas: 1, ServiceNetworks: []string{"10.4.0.0/16"}, IsWorkerless: true,
			EgressHost: "egress.garden.svc",
		},
		"settings": allSettings(), "highly-available": pairValues(),
	} {
		t.Run(name, func(t *testing.T) {
			values.PriorityClass = component.PriorityControlPlane500
			mounted := mounted
			if hasPaths(values) {
				mounted.pki = maps.Clone(mounted.pki)
				mounted.pki["vpn-client"] = component.SecretFiles{Secret: "kube-apiserver-http-proxy-client-44444444"}
				mounted.pki["ca-vpn"] = component.SecretFiles{Secret: "ca-vpn-bundle-55555555"}
			}
			golden.Check[client.Object](t, name, service(namespace, values),
				deployment(namespace, values.withDefaults(), mounted))
		})
	}
}

// imagePolicyKubeconfig names a proxy, which validation refuses.
const imagePolicyKubeconfig = `
apiVersion: v1
kind: Config
clusters:
- {name: one, cluster: {server: "https://one.example.com", certificate-authority-data: eA==, tls-server-name: other.example.com}}
- {name: two, cluster: {server: "https://10.0.0.1", proxy-url: "http://10.0.0.2:3128"}}
users: [{name: webhook, user: {token: secret}}]
contexts: [{name: webhook, context: {cluster: one, user: webhook}}]
current-context: webhook
`

// allSettings are values with everything that a user can say.
func allSettings() Values {
	values := shootValues()
	values.EgressImage = "vpn:v1"
	values.ServiceAccounts = ServiceAccountValues{
		Issuer:                "https://issuer.example.com",
		AcceptedIssuers:       []string{"https://old.example.com", "https://older.example.com"},
		ExtendTokenExpiration: true, MaxTokenExpiration: 720 * time.Hour,
	}
	values.APIAudiences = []string{"vault"}
	values.Encryption = EncryptionValues{Provider: AESGCM, Resources: []string{"secrets", "configmaps"}}
	values.EnabledAdmissionPlugins, values.DisabledAdmissionPlugins = []string{"PodNodeSelector"},
		[]string{"LimitRanger"}
	values.AdmissionConfigs = []AdmissionConfig{
		{
			Name:   "PodNodeSelector",
			Config: []byte(`{"podNodeSelectorPluginConfig":{"clusterDefaultNodeSelector":"a=b"}}`),
		},
		{Name: "ValidatingAdmissionWebhook", Kubeconfig: []byte("kubeconfig of webhooks")},
		{
			Name: "ImagePolicyWebhook", Config: []byte(`{"imagePolicy":{"defaultAllow":true}}`),
			Kubeconfig: []byte(imagePolicyKubeconfig),
		},
	}
	values.Authentication = &apiserverv1.AuthenticationConfiguration{
		TypeMeta: typeMeta("AuthenticationConfiguration"),
		JWT: []apiserverv1.JWTAuthenticator{{
			Issuer: apiserverv1.Issuer{URL: "https://accounts.example.com", Audiences: []string{"kubernetes"}},
			ClaimMappings: apiserverv1.ClaimMappings{
				Username: apiserverv1.PrefixedClaimOrExpression{Claim: "sub", Prefix: new("oidc:")},
			},
		}},
		Anonymous: &apiserverv1.AnonymousAuthConfig{
			Enabled: true, Conditions: []apiserverv1.AnonymousAuthCondition{{Path: "/livez"}, {Path: "/version"}},
		},
	}
	values.Authorizers = []apiserverv1.AuthorizerConfiguration{
		{Type: "Webhook", Name: "opa", Webhook: &apiserverv1.WebhookConfiguration{FailurePolicy: "NoOpinion"}},
	}
	values.AuthorizerKubeconfigs = map[string][]byte{"opa": []byte("kubeconfig of opa")}
	values.AuditPolicy = []byte("rules: [{level: None}]")
	values.EventTTL = 2 * time.Hour
	values.Verbosity, values.HTTPAccessVerbosity = 4, 3
	values.WatchCacheSizes = []WatchCacheSize{{Resource: "secrets", Size: 0}, {Resource: "deployments.apps", Size: 50}}
	values.DefaultWatchCacheSize = new(int32(100))
	values.NotReadyTolerationSeconds, values.UnreachableTolerationSeconds = new(int64(60)), new(int64(0))
	values.TLSMinVersion = "VersionTLS13"
	values.MinAllowed = corev1.ResourceList{
		corev1.ResourceMemory: resource.MustParse("1Gi"), corev1.ResourceCPU: resource.MustParse("1m"),
	}
	values.FeatureGates, values.RuntimeConfig = map[string]bool{"A": true}, map[string]bool{"api/beta": true}
	values.MaxRequestsInflight, values.MaxMutatingRequestsInflight = 40, 20
	return values
}

func TestConfigurationFiles(t *testing.T) {
	for name, values := range map[string]Values{
		"shoot": shootValues(), "settings": allSettings(),
		"workerless": {IsWorkerless: true, EgressHost: "egress.garden.svc"},
	} {
		files, err := configurationFiles(values.withDefaults())
		if err != nil {
			t.Fatal(err)
		}
		var all strings.Builder
		for _, file := range slices.Sorted(maps.Keys(files)) {
			fmt.Fprintf(&all, "# %s\n%s---\n", file, files[file])
		}
		golden.CheckText(t, "files-"+name, all.String())
	}
}

func TestAnonymousRequests(t *testing.T) {
	configured := func(anonymous *apiserverv1.AnonymousAuthConfig) Values {
		return Values{Authentication: &apiserverv1.AuthenticationConfiguration{Anonymous: anonymous}}
	}
	for name, test := range map[string]struct {
		values Values
		want   []string
	}{
		"default":                   {Values{}, healthChecks},
		"configuration without it":  {configured(nil), healthChecks},
		"turned off":                {configured(&apiserverv1.AnonymousAuthConfig{}), healthChecks},
		"everything":                {configured(&apiserverv1.AnonymousAuthConfig{Enabled: true}), nil},
		"everything, the older way": {Values{AllowAnonymous: true}, nil},
		"one path": {
			configured(&apiserverv1.AnonymousAuthConfig{
				Enabled: true, Conditions: []apiserverv1.AnonymousAuthCondition{{Path: "/version"}},
			}), append(slices.Clone(healthChecks), "/version"),
		},
	} {
		got := authentication(test.values).Anonymous
		var paths []string
		for _, condition := range got.Conditions {
			paths = append(paths, condition.Path)
		}
		if !got.Enabled || !slices.Equal(paths, test.want) {
			t.Errorf("%s: anonymous requests reach %v, want %v", name, paths, test.want)
		}
	}
}

// A ConfigMap with issuers is mounted as a folder, which changes with it, and takes the place of the configuration that
// is made here; without one nothing is mounted.
func TestAuthenticationOfAConfigMap(t *testing.T) {
	const flag = "--authentication-config=/etc/kubernetes/authentication/config.yaml"
	for _, name := range []string{"", "issuers"} {
		values := shootValues()
		values.AuthenticationConfigMap = name
		pod := deployment(namespace, values.withDefaults(), mountedSecrets{}).Spec.Template.Spec
		mounted := ""
		for _, volume := range pod.Volumes {
			if volume.ConfigMap != nil {
				mounted = volume.ConfigMap.Name
			}
		}
		isFolder := slices.ContainsFunc(pod.Containers[0].VolumeMounts, func(mount corev1.VolumeMount) bool {
			return mount.MountPath == authenticationMount && mount.SubPath == "" && mount.ReadOnly
		})
		if mounted != name || isFolder != (name != "") || slices.Contains(pod.Containers[0].Args, flag) != (name != "") {
			t.Errorf("ConfigMap %q: mounted %q, as a folder: %v, arguments %q", name, mounted, isFolder,
				pod.Containers[0].Args)
		}
	}
}

func TestArguments(t *testing.T) {
	values := shootValues()
	values.FeatureGates = map[string]bool{"B": false, "A": true}
	values.ExtraArgs = map[string]string{"event-ttl": "2h"}
	values.EnabledAdmissionPlugins = []string{"PodSecurity", "NodeRestriction"}
	arguments := Arguments(values)
	for _, want := range []string{
		"--event-ttl=2h", "--feature-gates=A=true,B=false", "--enable-admission-plugins=NodeRestriction,PodSecurity",
		"--authorization-mode=Node,RBAC", "--etcd-servers-overrides=/events#https://etcd-events-client:2379",
	} {
		if !slices.Contains(arguments, want) {
			t.Errorf("%s is missing in %v", want, arguments)
		}
	}
	if !slices.Equal(arguments, Arguments(values)) {
		t.Error("equal values gave other arguments: that would roll the pods")
	}
}

// A garden's kube-apiserver has no proxy.
func TestKeysOfIssuersAreAskedForThroughTheProxy(t *testing.T) {
	for host, want := range map[string]apiserverv1.EgressSelectorType{"egress.garden": "controlplane", "": ""} {
		values := allSettings()
		values.EgressHost = host
		if got := authentication(values).JWT[0].Issuer.EgressSelectorType; got != want {
			t.Errorf("%q: got %q, want %q", host, got, want)
		}
		if values.Authentication.JWT[0].Issuer.EgressSelectorType != "" {
			t.Error("the values were changed")
		}
	}
}

func TestAuthorizationWebhook(t *testing.T) {
	values := Values{Image: "kube-apiserver:v1", ServiceNetworks: []string{"10.4.0.0/16"}, IsWorkerless: true,
		AuthorizationWebhook: &AuthorizationWebhook{
			Name: "seeds", Server: "https://garden-apiserver.garden.svc/seedauthorizer", User: "kube-apiserver",
			MatchConditions: []string{"true"},
		}}
	arguments := strings.Join(Arguments(values), " ")
	if strings.Contains(arguments, "--authorization-mode") ||
		!strings.Contains(arguments, "--authorization-config="+configMount+"/files/"+fileAuthorization) {
		t.Errorf("arguments = %s", arguments)
	}
	files, err := configurationFiles(values)
	if err != nil {
		t.Fatal(err)
	}
	config := string(files[fileAuthorization])
	rbac, webhook := strings.Index(config, "type: RBAC"), strings.Index(config, "type: Webhook")
	if rbac < 0 || webhook < rbac || !strings.Contains(config, "failurePolicy: NoOpinion") ||
		!strings.Contains(config, authorizationKubeconfig) || strings.Contains(config, "Node") {
		t.Errorf("configuration = %s", config)
	}
	values.IsWorkerless = false
	if node := Authorization(*values.AuthorizationWebhook, "x", true).Authorizers[0].Type; node != "Node" {
		t.Errorf("with nodes, %s comes first", node)
	}
}

func TestServiceIP(t *testing.T) {
	for _, test := range []struct {
		network string
		offset  int
		want    string
	}{
		{"10.4.0.0/16", 1, "10.4.0.1"}, {"10.4.0.7/16", 10, "10.4.0.10"}, {"fd00::/112", 1, "fd00::1"},
		{"10.4.0.0/30", 10, ""}, {"x", 1, ""},
	} {
		got, err := ServiceIP(test.network, test.offset)
		if got != test.want || (err == nil) != (test.want != "") {
			t.Errorf("ServiceIP(%s, %d) = %q, %v; want %q", test.network, test.offset, got, err, test.want)
		}
	}
}

func TestValidate(t *testing.T) {
	for _, test := range []struct {
		change func(*Values)
		want   string
	}{
		{func(v *Values) { v.Image = "" }, "no image"},
		{func(v *Values) { v.ServiceNetworks = nil }, "no service network"},
		{func(v *Values) { v.ServiceNetworks = []string{"nope"} }, "service network"},
		{func(v *Values) { v.AdvertiseAddress = "nope" }, "advertise address"},
		{func(v *Values) { v.AdmissionConfigs = allSettings().AdmissionConfigs }, "no image is given for the sidecar"},
		{func(v *Values) { v.VPN.Paths = pairValues().VPN.Paths }, "no image is given for the sidecar that chooses"},
	} {
		values := shootValues()
		test.change(&values)
		if err := values.validate(); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("got %v, want %q", err, test.want)
		}
	}
}

// deploy deploys, and removes secrets that nothing uses.
func deploy(t *testing.T, c client.Client, values Values) Interface {
	t.Helper()
	egress, err := egresscomponent.Authority(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	manager, err := secrets.New(t.Context(), c, namespace,
		secrets.Options{Authorities: map[string]*corev1.Secret{component.CAEgress: egress}})
	if err != nil {
		t.Fatal(err)
	}
	if err := component.GenerateCertificateAuthorities(t.Context(), manager,
		append(Authorities(), component.CAKubelet, component.CAVPN)); err != nil {
		t.Fatal(err)
	}
	apiserver := New(c, namespace, manager, values)
	if err := apiserver.Deploy(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := manager.Cleanup(t.Context()); err != nil {
		t.Fatal(err)
	}
	return apiserver
}

// Drains heed what is highly available; what is not has no budget.
func TestDisruptionBudgetOfAPair(t *testing.T) {
	c := fake.NewClientBuilder().Build()
	budgets := func() int {
		list := &policyv1.PodDisruptionBudgetList{}
		if err := c.List(t.Context(), list, client.InNamespace(namespace)); err != nil {
			t.Fatal(err)
		}
		return len(list.Items)
	}
	deploy(t, c, shootValues())
	if got := budgets(); got != 0 {
		t.Errorf("%d budgets of one replica", got)
	}
	apiserver := deploy(t, c, pairValues())
	if got := budgets(); got != 1 {
		t.Errorf("%d budgets of two replicas", got)
	}
	if err := apiserver.Destroy(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := budgets(); got != 0 {
		t.Errorf("%d budgets of nothing", got)
	}
}

func TestDeployIsStableAndDestroyLeavesNothing(t *testing.T) {
	c := fake.NewClientBuilder().Build()
	first := deploy(t, c, shootValues()).GenericTokenKubeconfigSecretName()
	before := secretNames(t, c)
	apiserver := deploy(t, c, shootValues())
	if after := secretNames(t, c); !slices.Equal(before, after) {
		t.Errorf("a second run changed the secrets:\n%v\n%v", before, after)
	}
	if first == "" || apiserver.GenericTokenKubeconfigSecretName() != first {
		t.Errorf("generic kubeconfig is %q, was %q", apiserver.GenericTokenKubeconfigSecretName(), first)
	}
	if err := apiserver.Destroy(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := apiserver.WaitCleanup(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func secretNames(t *testing.T, c client.Client) []string {
	t.Helper()
	list := &corev1.SecretList{}
	if err := c.List(t.Context(), list); err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, secret := range list.Items {
		names = append(names, secret.Name)
	}
	return names
}

func TestTrafficDistribution(t *testing.T) {
	if got := service(namespace, Values{TrafficDistribution: "PreferClose"}).Spec.TrafficDistribution; got == nil ||
		*got != "PreferClose" {
		t.Errorf("got %v", got)
	}
}

// Pods are replaced after another restore of etcd, and without one they are as they were.
func TestARestoreOfETCDReplacesPods(t *testing.T) {
	values := shootValues().withDefaults()
	if got := deployment(namespace, values, mountedSecrets{}).Spec.Template.Annotations; got != nil {
		t.Errorf("without a restore there are %v", got)
	}
	asked := request.Restore{To: "2026-01-01T12:00:00Z", ID: "one"}
	values.ETCDRestore = Decide(component.Facts{RestoreETCD: asked}).ETCDRestore
	got := deployment(namespace, values, mountedSecrets{}).Spec.Template.Annotations
	if len(got) != 1 || got["trellis.garden/etcd-restore"] != "one" {
		t.Errorf("got %v", got)
	}
}
