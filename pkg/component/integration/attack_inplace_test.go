package integration

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"strings"
	"testing"
	"time"

	machinev1alpha1 "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	certutil "k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/certificate/csr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-garden/trellis/pkg/apis"
	"github.com/trellis-garden/trellis/pkg/component"
	etcdcomponent "github.com/trellis-garden/trellis/pkg/component/etcd"
	"github.com/trellis-garden/trellis/pkg/component/kubeapiserver"
	"github.com/trellis-garden/trellis/pkg/component/kubecontrollermanager"
	"github.com/trellis-garden/trellis/pkg/component/shootsystem"
)

// TestAttackUpdatesOfOtherNodes plays root on a worker that is updated in place, with the kubelet's certificate. It may
// say of its own node that it was updated, as node-agent does, and so keep an old kubelet on its own machine. It says
// nothing of another node, has none drained or admitted, not even its own, restarts no pods elsewhere, and gets no
// certificate of another node. All that node-agent does in an update is allowed.
func TestAttackUpdatesOfOtherNodes(t *testing.T) {
	cp, admin := startWithNodes(t)
	root := cp.as(t, "m1")
	nodes := root.CoreV1().Nodes()
	patch := func(node, patch string) error {
		_, err := nodes.Patch(t.Context(), node, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
		return err
	}
	said := `{"metadata": {"labels": {"` + machinev1alpha1.LabelKeyNodeUpdateResult + `": "successful"}}}`
	for what, err := range map[string]error{
		"label of its node": patch("m1", said),
		"reason of a failure": patch("m1", `{"metadata": {"annotations": {"`+
			machinev1alpha1.AnnotationKeyMachineUpdateFailedReason+`": "no image"}}}`),
		"pods of its node": root.CoreV1().Pods("default").Delete(t.Context(), "on-m1", metav1.DeleteOptions{}),
	} {
		if err != nil {
			t.Errorf("node-agent may not change the %s: %v", what, err)
		}
	}
	if _, err := root.CoreV1().Pods("").List(t.Context(),
		metav1.ListOptions{FieldSelector: "spec.nodeName=m1"}); err != nil {
		t.Errorf("node-agent may not list the pods of its node: %v", err)
	}
	watcher, err := nodes.Watch(t.Context(), metav1.ListOptions{FieldSelector: "metadata.name=m1"})
	if err != nil {
		t.Errorf("node-agent may not watch its node: %v", err)
	} else {
		watcher.Stop()
	}
	for what, err := range map[string]error{
		"another's label":     patch("m2", said),
		"selecting another":   patch("m2", strings.Replace(said, "update-result", "selected-for-update", 1)),
		"admitting pods":      patch("m1", `{"spec": {"taints": null}}`),
		"pods of another":     root.CoreV1().Pods("default").Delete(t.Context(), "on-m2", metav1.DeleteOptions{}),
		"another's condition": patchStatus(t.Context(), root, "m2"),
	} {
		if !apierrors.IsForbidden(err) {
			t.Errorf("%s: got %v", what, err)
		}
	}
	if issued, err := requestFor(t, root, "m1", timeout); err != nil || issued.Subject.CommonName != "system:node:m1" {
		t.Errorf("node-agent gets no certificate: %v, %v", issued, err)
	}
	if issued, err := requestFor(t, root, "m2", 5*time.Second); err == nil {
		t.Errorf("root on m1 got the certificate of %s", issued.Subject)
	}
	other, err := admin.CoreV1().Nodes().Get(t.Context(), "m2", metav1.GetOptions{})
	if err != nil || len(other.Labels[machinev1alpha1.LabelKeyNodeUpdateResult]) > 0 {
		t.Errorf("got %v, %v", other, err)
	}
}

// startWithNodes starts a control plane with two tainted nodes, each of which has a pod.
func startWithNodes(t *testing.T) (*controlPlane, kubernetes.Interface) {
	t.Helper()
	cp := newControlPlane(t)
	for _, role := range []etcdcomponent.Role{etcdcomponent.Main, etcdcomponent.Events} {
		cp.deploy(t, etcdcomponent.New(cp.seed, namespace, cp.secrets,
			etcdcomponent.Values{Role: role, Image: "etcd", Replicas: 1}))
		cp.startEtcd(t, role)
	}
	cp.deploy(t, kubeapiserver.New(cp.seed, namespace, cp.secrets, kubeapiserver.Values{
		Version: version, Image: "kube-apiserver", Replicas: 1, ServiceNetworks: []string{"10.4.0.0/16"},
		AdvertiseAddress: "240.0.0.1", ExternalHostnames: []string{"api.member1.demo.local.trellis.garden"},
		VPN: &kubeapiserver.VPNValues{}, AggregatorRouting: true,
	}))
	cp.start(t, kubeapiserver.Name)
	admin := cp.adminClient(t)
	cp.eventually(t, "kube-apiserver is ready", func(ctx context.Context) error {
		_, err := admin.Discovery().RESTClient().Get().AbsPath("/readyz").DoRaw(ctx)
		return err
	})
	cp.deploy(t, kubecontrollermanager.New(cp.seed, namespace, cp.secrets, kubecontrollermanager.Values{
		Version: version, Image: "kcm", Replicas: 1, ClusterName: namespace, PodNetworks: []string{"10.3.0.0/16"},
		ServiceNetworks: []string{"10.4.0.0/16"},
	}))
	cp.start(t, kubecontrollermanager.Name)
	target, err := client.New(cp.adminConfig(t), client.Options{Scheme: apis.GardenScheme()})
	if err != nil {
		t.Fatal(err)
	}
	for _, object := range shootsystem.Objects(shootsystem.Values{NodeAgentSecrets: []string{"osc"}}) {
		if err := component.Apply(t.Context(), target, object); err != nil {
			t.Fatal(err)
		}
	}
	cp.eventually(t, "the default service account is there", func(ctx context.Context) error {
		_, err := admin.CoreV1().ServiceAccounts("default").Get(ctx, "default", metav1.GetOptions{})
		return err
	})
	for _, name := range []string{"m1", "m2"} {
		placeNode(t, admin, name)
	}
	return cp, admin
}

// placeNode makes a tainted node with a pod.
func placeNode(t *testing.T, admin kubernetes.Interface, name string) {
	t.Helper()
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.NodeSpec{
		Taints: []corev1.Taint{{Key: "critical", Effect: corev1.TaintEffectNoSchedule}},
	}}
	if _, err := admin.CoreV1().Nodes().Create(t.Context(), node, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "on-" + name},
		Spec: corev1.PodSpec{
			NodeName: name, Containers: []corev1.Container{{Name: "web", Image: "nginx"}},
			TerminationGracePeriodSeconds: new(int64(0)),
			Tolerations:                   []corev1.Toleration{{Operator: corev1.TolerationOpExists}},
		},
	}
	if _, err := admin.CoreV1().Pods("default").Create(t.Context(), pod, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// as is a client with the identity of a node's kubelet.
func (cp *controlPlane) as(t *testing.T, node string) kubernetes.Interface {
	t.Helper()
	config := cp.adminConfig(t)
	config.Impersonate = rest.ImpersonationConfig{
		UserName: "system:node:" + node, Groups: []string{"system:nodes", "system:authenticated"},
	}
	set, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return set
}

// patchStatus has a node be said to be ready for an update, so that it is updated without a drain.
func patchStatus(ctx context.Context, c kubernetes.Interface, node string) error {
	patch := fmt.Sprintf(`{"status": {"conditions": [{"type": %q, "status": "True", "reason": %q}]}}`,
		machinev1alpha1.NodeInPlaceUpdate, machinev1alpha1.ReadyForUpdate)
	_, err := c.CoreV1().Nodes().Patch(ctx, node, types.StrategicMergePatchType, []byte(patch), metav1.PatchOptions{},
		"status")
	return err
}

// requestFor asks for the client certificate of a node's kubelet, as node-agent does after a rotation.
func requestFor(t *testing.T, as kubernetes.Interface, node string,
	within time.Duration) (*x509.Certificate, error) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	request, err := certutil.MakeCSR(key,
		&pkix.Name{CommonName: "system:node:" + node, Organization: []string{"system:nodes"}}, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	name, uid, err := csr.RequestCertificateWithContext(t.Context(), as, request, "",
		certificatesv1.KubeAPIServerClientKubeletSignerName, nil,
		[]certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, certificatesv1.UsageClientAuth}, key)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	issued, err := csr.WaitForCertificate(ctx, as, name, uid)
	if err != nil {
		return nil, err
	}
	parsed, err := certutil.ParseCertsPEM(issued)
	if err != nil {
		return nil, err
	}
	return parsed[0], nil
}
