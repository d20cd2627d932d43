package federation

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/cluster/v1alpha1"
	"github.com/trellis-garden/trellis/pkg/federation/registration"
	"github.com/trellis-garden/trellis/test/integration/environment"
)

// The API of a member with an agent is served through the fleet by the tunnel that the agent opens, through real API
// servers on both sides: to administrators as those of the member, to others as what the member's roles say.
func TestMembersThroughTheirAgent(t *testing.T) {
	w := newWorld(t)
	w.startWithMemberAPI(t)
	p := w.invite(t, "tunneled", registration.Allowance{})
	kill, _ := p.start(t)
	p.accept(t)
	w.ready(t, p.name, metav1.ConditionTrue, "ClusterReady")
	const base = "/apis/cluster.karmada.io/v1alpha1/clusters/tunneled/proxy"
	listed := func() error {
		list, err := answer(w.fleetConfig, http.MethodGet, base+"/api/v1/namespaces?limit=500")
		if err == nil && !strings.Contains(list, p.invitation.Access) {
			err = fmt.Errorf("got %s", list)
		}
		return err
	}
	eventually(t, "an administrator of the fleet is one of the member", listed)
	t.Run("watches stream", func(t *testing.T) { w.streams(t, p.member, base) })
	t.Run("who may not use the proxy is refused by the fleet", func(t *testing.T) {
		_, err := answer(w.asAlice(), http.MethodGet, base+"/api/v1/namespaces")
		refusedWith(t, err, `cannot get resource "clusters/proxy" in API group "cluster.karmada.io"`)
	})
	t.Run("who may use it may in the member what its roles say", func(t *testing.T) {
		grantTo(t, w.fleet, "alice-tunneled", rbacv1.PolicyRule{
			APIGroups: []string{"cluster.karmada.io"}, Resources: []string{"clusters/proxy"},
			ResourceNames: []string{"tunneled"}, Verbs: []string{"get"},
		}, rbacUser("alice"))
		eventually(t, "the member refuses", func() error {
			_, err := answer(w.asAlice(), http.MethodGet, base+"/api/v1/namespaces")
			if err == nil || !strings.Contains(err.Error(),
				`User "`+w.namePrefix(t)+`alice" cannot list resource "namespaces"`) {
				return fmt.Errorf("got %v", err)
			}
			return nil
		})
	})
	t.Run("tunnels of others are refused", func(t *testing.T) { w.attacksByTunnels(t, p) })
	t.Run("an agent that starts again opens another", func(t *testing.T) {
		kill()
		p.start(t)
		eventually(t, "namespaces are listed", listed)
	})
	// Others use this world after it, and count its members.
	if err := registration.Unjoin(ctx, w.fleet, p.name, environment.Patience, t.Logf); err != nil {
		t.Fatal(err)
	}
	w.finalizeNamespace(t, clusterv1alpha1.ExecutionNamespace(p.name))
}

// attacksByTunnels has an agent, and an administrator, open tunnels to members that are not theirs.
func (w *world) attacksByTunnels(t *testing.T, p *pulled) {
	secret := &corev1.Secret{}
	key := types.NamespacedName{Namespace: p.invitation.Access, Name: "credentials"}
	if err := p.member.Get(ctx, key, secret); err != nil {
		t.Fatal(err)
	}
	agent := &rest.Config{
		Host: w.fleetConfig.Host,
		TLSClientConfig: rest.TLSClientConfig{
			Insecure: true, CertData: secret.Data["tls.crt"], KeyData: secret.Data["tls.key"],
		},
	}
	const clusters = "/apis/cluster.karmada.io/v1alpha1/clusters/"
	if _, err := answer(agent, http.MethodPost, clusters+"member1/attach"); !apierrors.IsForbidden(err) {
		t.Errorf("at another member: got %v", err)
	}
	if _, err := answer(agent, http.MethodGet, clusters+"tunneled/proxy/api"); !apierrors.IsForbidden(err) {
		t.Errorf("through the fleet: got %v", err)
	}
	if _, err := answer(agent, http.MethodPost, clusters+"tunneled/attach"); !apierrors.IsBadRequest(err) {
		t.Errorf("without an upgrade: got %v", err)
	}
	_, err := answer(w.fleetConfig, http.MethodPost, clusters+"tunneled/attach")
	refusedWith(t, err, "only the agent of the member opens a tunnel")
}

// The impersonator of an agent goes with it.
func (p *pulled) impersonatorGoes(access string, owner types.UID) error {
	name := registration.ImpersonatorName(access)
	var errs []error
	for _, right := range []client.Object{&rbacv1.ClusterRole{}, &rbacv1.ClusterRoleBinding{}} {
		err := p.member.Get(ctx, client.ObjectKey{Name: name}, right)
		if err == nil && (len(right.GetOwnerReferences()) != 1 || right.GetOwnerReferences()[0].UID != owner) {
			err = fmt.Errorf("%T %s is owned by %v", right, name, right.GetOwnerReferences())
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}
