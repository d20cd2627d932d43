package integration

import (
	"context"
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-garden/trellis/pkg/apiserverconfig"
	etcdcomponent "github.com/trellis-garden/trellis/pkg/component/etcd"
	"github.com/trellis-garden/trellis/pkg/component/kubeapiserver"
	"github.com/trellis-garden/trellis/pkg/component/kubecontrollermanager"
	"github.com/trellis-garden/trellis/pkg/component/kubescheduler"
)

const auditPolicy = `
apiVersion: audit.k8s.io/v1
kind: Policy
rules:
- level: Request
  verbs: [create]
  resources: [{resources: [configmaps]}]
- level: None
`

// Every setting that a user can make, at once, with the real programs.
func TestAllSettings(t *testing.T) {
	cp := newControlPlane(t)
	for _, role := range []etcdcomponent.Role{etcdcomponent.Main, etcdcomponent.Events} {
		cp.deploy(t, etcdcomponent.New(cp.seed, namespace, cp.secrets,
			etcdcomponent.Values{Role: role, Image: "etcd", Replicas: 1}))
		cp.startEtcd(t, role)
	}
	issuer, webhook := newIssuer(t), newWebhook(t)
	cp.deploy(t, kubeapiserver.New(cp.seed, namespace, cp.secrets, allSettings(t, issuer, webhook)))
	cp.start(t, kubeapiserver.Name)
	admin := cp.adminClient(t)
	cp.eventually(t, "kube-apiserver is ready", func(ctx context.Context) error {
		_, err := admin.Discovery().RESTClient().Get().AbsPath("/readyz").DoRaw(ctx)
		return err
	})
	cp.deploy(t, kubecontrollermanager.New(cp.seed, namespace, cp.secrets, kubecontrollermanager.Values{
		Version: version, Image: "kcm", Replicas: 1, ClusterName: namespace, PodNetworks: []string{"10.3.0.0/16"},
		ServiceNetworks: []string{"10.4.0.0/16"},
		FeatureGates:    map[string]bool{"AllAlpha": false}, NodeCIDRMaskSize: 25,
		ExtraArgs: map[string]string{"node-monitor-grace-period": "1m0s", "horizontal-pod-autoscaler-tolerance": "0.2"},
	}))
	cp.deploy(t, kubescheduler.New(cp.seed, namespace, cp.secrets, kubescheduler.Values{
		Version: version, Image: "scheduler", Replicas: 1, Profile: kubescheduler.BinPacking,
		FeatureGates: map[string]bool{"AllAlpha": false},
	}))
	cp.start(t, kubecontrollermanager.Name)
	cp.start(t, kubescheduler.Name)

	t.Run("the audit policy is honoured", func(t *testing.T) { cp.checkAudit(t, admin) })
	t.Run("tokens of the issuer are accepted, and the authorizer is asked",
		func(t *testing.T) { cp.checkIdentity(t, issuer, webhook) })
	t.Run("anonymous requests reach what the configuration names", func(t *testing.T) {
		client := cp.clientWith(t, "")
		if _, err := client.Discovery().RESTClient().Get().AbsPath("/version").DoRaw(t.Context()); err != nil {
			t.Errorf("/version: %v", err)
		}
		if _, err := client.Discovery().
			RESTClient().Get().AbsPath("/api").DoRaw(t.Context()); !apierrors.IsUnauthorized(err) {
			t.Errorf("/api: %v", err)
		}
	})
	t.Run("objects are encrypted with AES-GCM", func(t *testing.T) {
		stored := cp.read(t, etcdcomponent.Main, "/registry/configmaps/default/audited")
		if !strings.HasPrefix(string(stored), "k8s:enc:aesgcm:") {
			t.Errorf("the ConfigMap is stored as %q", stored[:min(40, len(stored))])
		}
	})
	t.Run("pods are placed, with the settings of admission", func(t *testing.T) { cp.checkPlacement(t, admin) })
}

// allSettings are values as gardenlet makes them of a Shoot with everything in it.
func allSettings(t *testing.T, issuer *issuer, webhook *webhook) kubeapiserver.Values {
	t.Helper()
	user := &gardencorev1beta1.KubeAPIServerConfig{
		AuditConfig: &gardencorev1beta1.AuditConfig{
			AuditPolicy: &gardencorev1beta1.AuditPolicy{ConfigMapRef: &corev1.ObjectReference{Name: "audit"}},
		},
		StructuredAuthentication: &gardencorev1beta1.StructuredAuthentication{ConfigMapName: "authentication"},
		StructuredAuthorization: &gardencorev1beta1.StructuredAuthorization{
			ConfigMapName: "authorization",
			Kubeconfigs: []gardencorev1beta1.AuthorizerKubeconfigReference{
				{AuthorizerName: "mine", SecretName: "mine"},
			},
		},
	}
	files := &apiserverconfig.Files{
		AuditPolicy: []byte(auditPolicy), Authentication: []byte(issuer.configuration()),
		Authorization:         []byte(authorization),
		AuthorizerKubeconfigs: map[string][]byte{"mine": []byte(webhook.kubeconfig())},
	}
	config, errs, err := apiserverconfig.Parse(files, user,
		apiserverconfig.Rules{Issuers: []string{"https://issuer.example.com"}, KubernetesVersion: "1.36.3"},
		field.NewPath("spec"))
	if err != nil || len(errs) > 0 {
		t.Fatal(err, errs)
	}
	return kubeapiserver.Values{
		Version: version, Image: "kube-apiserver", Replicas: 1, ServiceNetworks: []string{"10.4.0.0/16"},
		AdvertiseAddress: "240.0.0.1", ExternalHostnames: []string{"api.member1.demo.local.trellis.garden"},
		VPN: &kubeapiserver.VPNValues{}, AggregatorRouting: true,
		AuditPolicy: config.AuditPolicy, Authentication: config.Authentication,
		Authorizers: config.Authorizers, AuthorizerKubeconfigs: config.AuthorizerKubeconfigs,
		ServiceAccounts: kubeapiserver.ServiceAccountValues{
			Issuer: "https://issuer.example.com", AcceptedIssuers: []string{"https://old.example.com"},
			ExtendTokenExpiration: true, MaxTokenExpiration: 720 * time.Hour,
		},
		APIAudiences: []string{"kubernetes", "vault"},
		Encryption: kubeapiserver.EncryptionValues{
			Provider: kubeapiserver.AESGCM, Resources: []string{"secrets", "configmaps"},
		},
		EnabledAdmissionPlugins: []string{
			"PodNodeSelector", "EventRateLimit", "ValidatingAdmissionWebhook", "MutatingAdmissionWebhook",
			"PodSecurity", "ImagePolicyWebhook",
		},
		DisabledAdmissionPlugins: []string{"LimitRanger"},
		AdmissionConfigs: []kubeapiserver.AdmissionConfig{
			{
				Name:   "PodNodeSelector",
				Config: []byte(`{"podNodeSelectorPluginConfig":{"clusterDefaultNodeSelector":"kind=worker"}}`),
			},
			{
				Name:   "EventRateLimit",
				Config: []byte(`{"apiVersion":"eventratelimit.admission.k8s.io/v1alpha1","kind":"Configuration","limits":[{"type":"Server","qps":1000,"burst":1000}]}`),
			},
			{
				Name:   "PodSecurity",
				Config: []byte(`{"apiVersion":"pod-security.admission.config.k8s.io/v1","kind":"PodSecurityConfiguration","defaults":{"enforce":"baseline"}}`),
			},
			{Name: "ValidatingAdmissionWebhook", Kubeconfig: []byte(webhook.kubeconfig())},
			{Name: "MutatingAdmissionWebhook", Kubeconfig: []byte(webhook.kubeconfig())},
			{
				Name: "ImagePolicyWebhook", Config: []byte(`{"imagePolicy":{"defaultAllow":true}}`),
				Kubeconfig: []byte(webhook.kubeconfig()),
			},
		},
		EventTTL: 2 * time.Hour, Verbosity: 2, HTTPAccessVerbosity: 3,
		WatchCacheSizes: []kubeapiserver.WatchCacheSize{
			{Resource: "secrets", Size: 0}, {Resource: "deployments.apps", Size: 50},
		},
		// A field of older versions; the program still takes it.
		DefaultWatchCacheSize:     new(int32(100)),
		NotReadyTolerationSeconds: new(int64(60)), UnreachableTolerationSeconds: new(int64(90)),
		TLSMinVersion: "VersionTLS13",
		MinAllowed:    corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("1Gi")},
		FeatureGates:  map[string]bool{"AllAlpha": false}, RuntimeConfig: map[string]bool{"api/beta": true},
		MaxRequestsInflight: 40, MaxMutatingRequestsInflight: 20,
	}
}

// checkAudit makes a request that the policy asks for and one that it does not.
func (cp *controlPlane) checkAudit(t *testing.T, admin kubernetes.Interface) {
	t.Helper()
	object := metav1.ObjectMeta{Name: "audited"}
	if _, err := admin.CoreV1().ConfigMaps("default").Create(t.Context(),
		&corev1.ConfigMap{ObjectMeta: object, Data: map[string]string{"a": "in-the-log"}},
		metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	object.Name = "unaudited"
	if _, err := admin.CoreV1().Secrets("default").Create(t.Context(), &corev1.Secret{ObjectMeta: object},
		metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	cp.eventually(t, "the request is in the audit log", func(context.Context) error {
		if !strings.Contains(cp.outputs[kubeapiserver.Name].String(), "in-the-log") {
			return errors.New("it is not")
		}
		return nil
	})
	for line := range strings.Lines(cp.outputs[kubeapiserver.Name].String()) {
		if strings.Contains(line, `"auditID"`) && strings.Contains(line, "unaudited") {
			t.Errorf("the policy asks for no %s", line)
		}
	}
}

// checkIdentity uses a token of an issuer that only the authentication configuration knows, for what only the webhook
// allows.
func (cp *controlPlane) checkIdentity(t *testing.T, issuer *issuer, webhook *webhook) {
	t.Helper()
	alice := cp.clientWith(t, issuer.token(t, "alice"))
	cp.eventually(t, "the token is accepted", func(ctx context.Context) error {
		review, err := alice.AuthenticationV1().SelfSubjectReviews().Create(ctx, &authenticationv1.SelfSubjectReview{},
			metav1.CreateOptions{})
		if err == nil && review.Status.UserInfo.Username != "oidc:alice" {
			err = fmt.Errorf("the user is %q", review.Status.UserInfo.Username)
		}
		return err
	})
	if _, err := alice.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{}); err != nil {
		t.Errorf("what the webhook allows: %v", err)
	}
	if _, err := alice.CoreV1().Secrets("default").List(t.Context(),
		metav1.ListOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("what nobody allows: %v", err)
	}
	if forged := cp.clientWith(t, newIssuer(t).token(t, "alice")); forged != nil {
		if _, err := forged.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{}); !apierrors.IsUnauthorized(err) {
			t.Errorf("a token of somebody else: %v", err)
		}
	}
}

// checkPlacement creates nodes and pods: the second pod joins the first one rather than going to the empty node.
func (cp *controlPlane) checkPlacement(t *testing.T, admin kubernetes.Interface) {
	t.Helper()
	for _, name := range []string{"one", "two"} {
		node := &corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"kind": "worker"}},
			Status: corev1.NodeStatus{
				Allocatable: corev1.ResourceList{
					"cpu": resource.MustParse("4"), "memory": resource.MustParse("8Gi"),
					"pods": resource.MustParse("10"),
				},
				Conditions: []corev1.NodeCondition{
					{Type: corev1.NodeReady, Status: corev1.ConditionTrue, LastHeartbeatTime: metav1.Now()},
				},
			},
		}
		node.Status.Capacity = node.Status.Allocatable
		if _, err := admin.CoreV1().Nodes().Create(t.Context(), node, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	var places []string
	for _, name := range []string{"first", "second", "third"} {
		places = append(places, cp.placeOf(t, admin, name))
	}
	if places[1] != places[0] || places[2] != places[0] {
		t.Errorf("the pods are on nodes %v, want one node", places)
	}
}

// placeOf creates a pod and returns its node.
func (cp *controlPlane) placeOf(t *testing.T, admin kubernetes.Interface, name string) string {
	t.Helper()
	wanted := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.PodSpec{
			Containers: []corev1.Container{{Name: "c", Image: "i", Resources: corev1.ResourceRequirements{
				Requests: corev1.ResourceList{"cpu": resource.MustParse("1"), "memory": resource.MustParse("100Mi")},
			}}},
		},
	}
	cp.eventually(t, "the pod is accepted", func(ctx context.Context) error {
		_, err := admin.CoreV1().Pods("default").Create(ctx, wanted, metav1.CreateOptions{})
		return err
	})
	place := ""
	cp.eventually(t, "the pod is placed", func(ctx context.Context) error {
		pod, err := admin.CoreV1().Pods("default").Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if place = pod.Spec.NodeName; place == "" {
			return fmt.Errorf("not yet: %v", pod.Status.Conditions)
		}
		if pod.Spec.NodeSelector["kind"] != "worker" {
			t.Errorf("the pod's node selector is %v", pod.Spec.NodeSelector)
		}
		for _, toleration := range pod.Spec.Tolerations {
			if toleration.Key == corev1.TaintNodeNotReady && *toleration.TolerationSeconds != 60 {
				t.Errorf("the pod stays %d s on a node that is not ready", *toleration.TolerationSeconds)
			}
		}
		return nil
	})
	return place
}

// clientWith returns a client with a token; without one it is anonymous.
func (cp *controlPlane) clientWith(t *testing.T, token string) kubernetes.Interface {
	t.Helper()
	config := rest.AnonymousClientConfig(cp.adminConfig(t))
	config.BearerToken = token
	set, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return set
}

// issuer issues OpenID Connect tokens.
type issuer struct {
	server *httptest.Server
	key    *rsa.PrivateKey
}

func newIssuer(t *testing.T) *issuer {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	i := &issuer{key: key}
	mux := http.NewServeMux()
	mux.HandleFunc("/.well-known/openid-configuration", func(w http.ResponseWriter, _ *http.Request) {
		reply(w, map[string]any{
			"issuer": i.server.URL, "jwks_uri": i.server.URL + "/jwks",
			"response_types_supported": []string{"id_token"},
			"subject_types_supported":  []string{"public"}, "id_token_signing_alg_values_supported": []string{"RS256"},
		})
	})
	mux.HandleFunc("/jwks", func(w http.ResponseWriter, _ *http.Request) {
		reply(w, map[string]any{"keys": []any{map[string]any{
			"kty": "RSA", "use": "sig", "alg": "RS256", "kid": "k", "n": encode(key.N.Bytes()),
			"e": encode(big.NewInt(int64(key.E)).Bytes()),
		}}})
	})
	i.server = httptest.NewTLSServer(mux)
	t.Cleanup(i.server.Close)
	return i
}

func (i *issuer) configuration() string {
	return fmt.Sprintf(`
apiVersion: apiserver.config.k8s.io/v1beta1
kind: AuthenticationConfiguration
anonymous: {enabled: true, conditions: [{path: /version}]}
jwt:
- issuer:
    url: %s
    audiences: [cluster]
    certificateAuthority: %q
  claimMappings:
    username: {expression: "'oidc:' + claims.sub"}
`, i.server.URL, authorityOf(i.server))
}

// token returns a signed token for a subject.
func (i *issuer) token(t *testing.T, subject string) string {
	t.Helper()
	claims, err := json.Marshal(map[string]any{
		"iss": i.server.URL, "aud": "cluster", "sub": subject, "exp": time.Now().Add(time.Hour).Unix(),
		"iat": time.Now().Unix(),
	})
	if err != nil {
		t.Fatal(err)
	}
	signed := encode([]byte(`{"alg":"RS256","kid":"k"}`)) + "." + encode(claims)
	digest := sha256.Sum256([]byte(signed))
	signature, err := rsa.SignPKCS1v15(rand.Reader, i.key, crypto.SHA256, digest[:])
	if err != nil {
		t.Fatal(err)
	}
	return signed + "." + encode(signature)
}

const authorization = `
apiVersion: apiserver.config.k8s.io/v1
kind: AuthorizationConfiguration
authorizers:
- type: Webhook
  name: mine
  webhook:
    timeout: 3s
    subjectAccessReviewVersion: v1
    matchConditionSubjectAccessReviewVersion: v1
    failurePolicy: NoOpinion
    matchConditions: [{expression: "request.user.startsWith('oidc:')"}]
`

// webhook lets every user list nodes, and every image run.
type webhook struct{ server *httptest.Server }

func newWebhook(t *testing.T) *webhook {
	t.Helper()
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		review := &authorizationv1.SubjectAccessReview{}
		if err := json.NewDecoder(r.Body).Decode(review); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		attributes := review.Spec.ResourceAttributes
		review.Status.Allowed = review.Kind == "ImageReview" ||
			attributes != nil && attributes.Resource == "nodes" && attributes.Verb == "list"
		reply(w, review)
	}))
	t.Cleanup(server.Close)
	return &webhook{server: server}
}

func (w *webhook) kubeconfig() string {
	return fmt.Sprintf(`
apiVersion: v1
kind: Config
clusters: [{name: webhook, cluster: {server: %q, certificate-authority-data: %s}}]
users: [{name: webhook, user: {token: secret}}]
contexts: [{name: webhook, context: {cluster: webhook, user: webhook}}]
current-context: webhook
`, w.server.URL, base64.StdEncoding.EncodeToString([]byte(authorityOf(w.server))))
}

func authorityOf(server *httptest.Server) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}))
}

func reply(w http.ResponseWriter, body any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(body)
}

func encode(data []byte) string { return base64.RawURLEncoding.EncodeToString(data) }
