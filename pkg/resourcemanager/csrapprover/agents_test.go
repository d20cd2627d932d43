package csrapprover

import (
	"context"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"testing"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	kubernetesfake "k8s.io/client-go/kubernetes/fake"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	clusterv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/cluster/v1alpha1"
	"github.com/trellis-garden/trellis/pkg/federation/registration"
	"github.com/trellis-garden/trellis/pkg/resourcemanager/target"
	"github.com/trellis-garden/trellis/test/certrequest"
)

// fleetWith is a fleet with the member edge, which has an agent.
func fleetWith(t *testing.T, functions interceptor.Funcs) client.Client {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := clusterv1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	return fake.NewClientBuilder().
		WithScheme(scheme).WithInterceptorFuncs(functions).WithObjects(&clusterv1alpha1.Cluster{
		ObjectMeta: metav1.ObjectMeta{Name: "edge", UID: "1"},
		Spec:       clusterv1alpha1.ClusterSpec{SyncMode: clusterv1alpha1.Pull, ID: "id"},
	}).Build()
}

// renewal of an agent's certificate, by that agent.
func renewal(t *testing.T, name, user string,
	template *x509.CertificateRequest) *certificatesv1.CertificateSigningRequest {
	t.Helper()
	return &certificatesv1.CertificateSigningRequest{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, UID: types.UID(name), CreationTimestamp: metav1.Now(),
			Labels:      map[string]string{clusterv1alpha1.MemberLabel: "edge"},
			Annotations: map[string]string{registration.IDAnnotation: "id"},
		},
		Spec: certificatesv1.CertificateSigningRequestSpec{
			SignerName: certificatesv1.KubeAPIServerClientSignerName, Username: user,
			Groups:  []string{registration.AgentGroup},
			Usages:  []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, certificatesv1.UsageClientAuth},
			Request: certrequest.Encode(t, template), ExpirationSeconds: new(int32(3600)),
		},
	}
}

func subject(user string, groups ...string) *x509.CertificateRequest {
	return &x509.CertificateRequest{Subject: pkix.Name{CommonName: user, Organization: groups}}
}

// Agents get certificates for themselves, and for nobody else.
func TestAgentsRenewTheirOwnCertificates(t *testing.T) {
	const agent, earlier = clusterv1alpha1.AgentUserPrefix + "edge:1", clusterv1alpha1.AgentUserPrefix + "edge:0"
	copied := renewal(t, "of another cluster", agent, subject(agent, registration.AgentGroup))
	copied.Annotations[registration.IDAnnotation] = "other"
	denied := renewal(t, "denied", agent, subject(agent, registration.AgentGroup))
	denied.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{
		{Type: certificatesv1.CertificateDenied},
	}
	served := renewal(t, "of kubelets' signer", agent, subject(agent, registration.AgentGroup))
	served.Spec.SignerName = certificatesv1.KubeletServingSignerName
	requests := map[*certificatesv1.CertificateSigningRequest]bool{
		renewal(t, "its own", agent, subject(agent, registration.AgentGroup)): true,
		renewal(t, "of a controller", agent,
			subject("system:kube-controller-manager", registration.AgentGroup)): false,
		renewal(t, "of administrators", agent,
			subject(agent, "system:masters")): false,
		renewal(t, "of an earlier member", earlier,
			subject(earlier, registration.AgentGroup)): false,
		renewal(t, "asked by the federation", registration.FleetAccount,
			subject(agent, registration.AgentGroup)): false,
		copied: false, denied: false, served: false,
	}
	kubernetes := kubernetesfake.NewClientset()
	for request := range requests {
		if err := kubernetes.Tracker().Add(request); err != nil {
			t.Fatal(err)
		}
	}
	approver := newApprover("fleet", &target.Target{Kubernetes: kubernetes}, agents(fleetWith(t, interceptor.Funcs{})))
	for request := range requests {
		if err := approver.handle(watch.Event{Type: watch.Added, Object: request}); err != nil {
			t.Fatal(err)
		}
	}
	approver.queue.work.ShutDown()
	approver.work(t.Context())
	for request, want := range requests {
		now, err := kubernetes.CertificatesV1().CertificateSigningRequests().Get(t.Context(), request.Name,
			metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if got := len(now.Status.Conditions) > 0 &&
			now.Status.Conditions[0].Type == certificatesv1.CertificateApproved; got != want {
			t.Errorf("%s: approved is %t, want %t", request.Name, got, want)
		}
	}
}

// A fleet that does not answer is asked again. One that says no is not, so that one agent's requests keep nobody's from
// being looked at.
func TestAgentsAreLookedAtAgainAfterErrors(t *testing.T) {
	const agent, gone = clusterv1alpha1.AgentUserPrefix + "edge:1", clusterv1alpha1.AgentUserPrefix + "edge:0"
	var fails error
	fleet := fleetWith(t, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object,
			options ...client.GetOption) error {
			return errors.Join(fails, c.Get(ctx, key, object, options...))
		},
	})
	request := renewal(t, "r", agent, subject(agent, registration.AgentGroup))
	approver := newApprover("fleet", &target.Target{Kubernetes: kubernetesfake.NewClientset(request)}, agents(fleet))
	decide := func(r *certificatesv1.CertificateSigningRequest) bool {
		t.Helper()
		open, err := approver.check(r)
		if err != nil {
			t.Fatal(err)
		}
		return approver.decide(t.Context(), r.Name,
			candidate{uid: r.UID, requester: r.Spec.Username, created: r.CreationTimestamp.Time, open: open})
	}
	if !decide(renewal(t, "old", gone, subject(gone, registration.AgentGroup))) {
		t.Error("the agent of an earlier member is looked at again")
	}
	time.Sleep(knownFor)
	if fails = errors.New("not now"); decide(request) {
		t.Error("an error is the last word")
	}
	time.Sleep(knownFor)
	if fails = nil; !decide(request) {
		t.Error("an approved request is looked at again")
	}
}
