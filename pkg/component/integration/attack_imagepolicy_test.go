package integration

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/go-logr/logr"
	"github.com/spf13/pflag"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	imagepolicyv1alpha1 "k8s.io/api/imagepolicy/v1alpha1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"

	egresscomponent "github.com/trellis-garden/trellis/pkg/component/egress"
	etcdcomponent "github.com/trellis-garden/trellis/pkg/component/etcd"
	"github.com/trellis-garden/trellis/pkg/component/kubeapiserver"
	"github.com/trellis-garden/trellis/pkg/egress"
	"github.com/trellis-garden/trellis/pkg/egress/sidecar"
	"github.com/trellis-garden/trellis/pkg/secrets"
	"github.com/trellis-garden/trellis/test/seedegress"
)

// TestAttackImagePolicyWebhookInTheSeed plays a tenant whose ImagePolicyWebhook is at an address of the seed, or sends
// kube-apiserver there.
func TestAttackImagePolicyWebhookInTheSeed(t *testing.T) {
	inside := newImagePolicy(t, "")
	t.Run("by its kubeconfig", func(t *testing.T) {
		proxy := seedegress.Start(t, egress.Rules{}, seedegress.World{})
		admin := startWithImagePolicy(t, proxy, inside.kubeconfig(inside.server.URL))
		if err := createPod(t, admin, "image:v1"); !apierrors.IsForbidden(err) {
			t.Errorf("a pod that the webhook was not asked about: %v", err)
		}
		if got := proxy.Dialled(); len(got) > 0 {
			t.Errorf("the proxy dialled %v", got)
		}
	})
	t.Run("by its name and its answers", func(t *testing.T) {
		outside := newImagePolicy(t, inside.server.URL)
		var address atomic.Value
		address.Store("93.184.216.34")
		proxy := seedegress.Start(t, egress.Rules{}, seedegress.World{
			Resolve: func(string) []netip.Addr { return []netip.Addr{netip.MustParseAddr(address.Load().(string))} },
			Servers: map[string]string{"93.184.216.34:443": outside.server.Listener.Addr().String()},
		})
		admin := startWithImagePolicy(t, proxy, outside.kubeconfig("https://example.com"))
		if err := createPod(t, admin, "image:v1"); err != nil || outside.asked.Load() != 1 {
			t.Errorf("a webhook outside, asked %d times: %v", outside.asked.Load(), err)
		}
		if err := createPod(t, admin, "image:refused"); !apierrors.IsForbidden(err) ||
			!strings.Contains(err.Error(), "not this one") {
			t.Errorf("an image that the webhook refuses: %v", err)
		}
		if err := createPod(t, admin, "image:redirected"); !apierrors.IsForbidden(err) {
			t.Errorf("a webhook that sends kube-apiserver into the seed: %v", err)
		}
		outside.server.CloseClientConnections()
		for _, private := range []string{"127.0.0.1", "10.1.0.5", "169.254.169.254", "::ffff:10.1.0.5"} {
			address.Store(private)
			if err := createPod(t, admin, "image:of-"+private); !apierrors.IsForbidden(err) {
				t.Errorf("a name that leads to %s: %v", private, err)
			}
		}
		if got := slices.Compact(proxy.Dialled()); !slices.Equal(got, []string{"93.184.216.34:443"}) {
			t.Errorf("the proxy dialled %v", got)
		}
	})
	if n := inside.asked.Load(); n > 0 {
		t.Errorf("what serves in the seed was asked %d times", n)
	}
}

// imagePolicy is a webhook. It refuses the image "refused", and sends who asks about "redirected" elsewhere.
type imagePolicy struct {
	server *httptest.Server
	asked  atomic.Int64
}

func newImagePolicy(t *testing.T, elsewhere string) *imagePolicy {
	t.Helper()
	policy := &imagePolicy{}
	policy.server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		policy.asked.Add(1)
		review := &imagepolicyv1alpha1.ImageReview{}
		if err := json.NewDecoder(r.Body).Decode(review); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		switch image := review.Spec.Containers[0].Image; {
		case strings.HasSuffix(image, ":redirected"):
			http.Redirect(w, r, elsewhere, http.StatusTemporaryRedirect)
			return
		case strings.HasSuffix(image, ":refused"):
			review.Status = imagepolicyv1alpha1.ImageReviewStatus{Reason: "not this one"}
		default:
			review.Status.Allowed = true
		}
		reply(w, review)
	}))
	t.Cleanup(policy.server.Close)
	return policy
}

func (p *imagePolicy) kubeconfig(server string) []byte {
	asTests := &webhook{server: p.server}
	return []byte(strings.Replace(asTests.kubeconfig(), p.server.URL, server, 1))
}

// startWithImagePolicy runs the control plane of a cluster without workers in the seed of a proxy.
func startWithImagePolicy(t *testing.T, proxy *seedegress.Proxy, kubeconfig []byte) kubernetes.Interface {
	t.Helper()
	cp := newControlPlaneOf(t, secrets.Options{Authorities: proxy.Authorities()})
	cp.addresses = map[string]string{
		fmt.Sprintf("%s:%d", egresscomponent.Host, egress.OutsidePort): proxy.Address,
		egress.SidecarAddress: fmt.Sprintf("127.0.0.1:%d", freePort(t)),
	}
	for _, role := range []etcdcomponent.Role{etcdcomponent.Main, etcdcomponent.Events} {
		cp.deploy(t, etcdcomponent.New(cp.seed, namespace, cp.secrets,
			etcdcomponent.Values{Role: role, Image: "etcd", Replicas: 1}))
		cp.startEtcd(t, role)
	}
	cp.deploy(t, kubeapiserver.New(cp.seed, namespace, cp.secrets, kubeapiserver.Values{
		Version: version, Image: "kube-apiserver", Replicas: 1, ServiceNetworks: []string{"10.4.0.0/16"},
		IsWorkerless: true,
		EgressHost:   egresscomponent.Host, EgressImage: "vpn", EnabledAdmissionPlugins: []string{"ImagePolicyWebhook"},
		AdmissionConfigs: []kubeapiserver.AdmissionConfig{{
			Name: "ImagePolicyWebhook", Config: []byte(`{"imagePolicy":{"defaultAllow":false,"retryBackoff":1}}`),
			Kubeconfig: kubeconfig,
		}},
	}))
	cp.startSidecar(t)
	cp.start(t, kubeapiserver.Name)
	admin := cp.adminClient(t)
	cp.eventually(t, "kube-apiserver is ready and has the namespace default", func(ctx context.Context) error {
		// Before that, admission refuses pods because it knows too little, as it does for the webhook.
		if _, err := admin.Discovery().RESTClient().Get().AbsPath("/readyz").DoRaw(ctx); err != nil {
			return err
		}
		_, err := admin.CoreV1().Namespaces().Get(ctx, "default", metav1.GetOptions{})
		return err
	})
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "default"}}
	if _, err := admin.CoreV1().ServiceAccounts("default").Create(t.Context(), account,
		metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	return admin
}

// startSidecar runs that of the kube-apiserver's Deployment, with its arguments and files.
func (cp *controlPlane) startSidecar(t *testing.T) {
	t.Helper()
	deployment := &appsv1.Deployment{}
	if err := cp.seed.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: kubeapiserver.Name},
		deployment); err != nil {
		t.Fatal(err)
	}
	pod := deployment.Spec.Template.Spec
	container := pod.InitContainers[0]
	places := cp.write(t, "sidecar", pod, container)
	var options sidecar.Options
	flags := pflag.NewFlagSet(container.Args[0], pflag.ContinueOnError)
	options.AddFlags(flags)
	var arguments []string
	for _, argument := range container.Args[1:] {
		arguments = append(arguments, cp.relocate(argument, places))
	}
	if err := flags.Parse(arguments); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan error, 1)
	go func() { done <- sidecar.Run(ctx, options, logr.Discard()) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// createPod creates one: what the API server says about the image is the answer.
func createPod(t *testing.T, admin kubernetes.Interface, image string) error {
	t.Helper()
	_, err := admin.CoreV1().Pods("default").Create(t.Context(), &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "pod-"},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: image}}},
	}, metav1.CreateOptions{})
	return err
}
