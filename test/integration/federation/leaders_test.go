package federation

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/cluster/v1alpha1"
	fleetv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/fleet/v1alpha1"
	"github.com/trellis-garden/trellis/pkg/egress"
	"github.com/trellis-garden/trellis/pkg/federation/controllers"
	"github.com/trellis-garden/trellis/pkg/federation/memberapi"
)

// leader is who holds the Lease of the fleet's processes; empty if nobody does.
func (w *world) leader() (string, error) {
	lease := &coordinationv1.Lease{}
	key := client.ObjectKey{Namespace: clusterv1alpha1.CredentialsNamespace, Name: fleetv1alpha1.LeaderLease}
	err := w.fleet.Get(ctx, key, lease)
	return ptr.Deref(lease.Spec.HolderIdentity, ""), client.IgnoreNotFound(err)
}

// leaderOtherThan waits until another one than before leads.
func (w *world) leaderOtherThan(t *testing.T, before string) (leader string) {
	t.Helper()
	eventually(t, "a process leads", func() (err error) {
		if leader, err = w.leader(); err == nil && (leader == "" || leader == before) {
			err = fmt.Errorf("the leader is %q", leader)
		}
		return err
	})
	return leader
}

// startReplica runs a process that stands by, or leads, and serves the API of members at an address meanwhile.
func (w *world) startReplica(t *testing.T, api memberapi.Options, listen string) (kill func()) {
	t.Helper()
	return w.startFederation(t, func(o *controllers.Options) {
		o.LeaderElection = true
		o.MemberAPI = api
		o.MemberAPI.Listen = listen
	})
}

// TestOneFederationWorks ends the one of two federation processes that works: the other one goes on. Both serve the API
// of members all the time, with the certificate that the fleet's kube-apiserver knows, which keeps asking.
func TestOneFederationWorks(t *testing.T) {
	w := newWorld(t)
	api, roots := sharedCertificate(t)
	served := net.JoinHostPort(w.ownAddress(t), strconv.Itoa(egress.ServedAPIsPort))
	standby := freeAddress()
	w.servers.servedAPIs.Store(served)
	t.Cleanup(func() {
		if err := memberapi.Unpublish(ctx, w.fleet); err != nil {
			t.Error(err)
		}
	})
	kill := w.startReplica(t, api, served)
	first := w.leaderOtherThan(t, "")
	w.startReplica(t, api, standby)
	eventually(t, "who stands by serves", func() error { return answersWith(standby, roots) })
	eventually(t, "the kube-apiserver asks them", w.asksForMembers)
	if leader, err := w.leader(); err != nil || leader != first {
		t.Errorf("the leader is %q, %v; want %q", leader, err, first)
	}
	namespace := w.newNamespace(t)
	apply(t, w.fleet, namespace, parse(t, orderedPolicy)[0], nginx(t))
	w.replicasIn(t, namespace, -1, 2)

	kill()
	if err := w.asksForMembers(); err != nil {
		t.Errorf("when one of two has ended: %v", err)
	}
	if err := answersWith(standby, roots); err != nil {
		t.Errorf("when one of two has ended: %v", err)
	}
	w.leaderOtherThan(t, first)
	other := w.newNamespace(t)
	apply(t, w.fleet, other, parse(t, orderedPolicy)[0], nginx(t))
	w.replicasIn(t, other, -1, 2)
}

// asksForMembers is an error when the fleet's kube-apiserver does not ask the processes for the API of members.
func (w *world) asksForMembers() error {
	registration := &apiregistrationv1.APIService{}
	err := w.fleet.Get(ctx, client.ObjectKey{Name: clusterv1alpha1.APIServiceName}, registration)
	if err == nil && registration.Spec.Service == nil {
		err = errors.New("it serves Clusters by itself")
	}
	return err
}

// sharedCertificate is what replicas serve with, and what the kube-apiserver trusts.
func sharedCertificate(t *testing.T) (memberapi.Options, *x509.CertPool) {
	t.Helper()
	certificate, key, err := memberapi.NewCertificate(time.Now())
	if err != nil {
		t.Fatal(err)
	}
	options := memberapi.Options{Address: egress.ServedAPIsAddress.String()}
	folder := t.TempDir()
	options.CertFile, options.KeyFile = filepath.Join(folder, "tls.crt"), filepath.Join(folder, "tls.key")
	if err := errors.Join(os.WriteFile(options.CertFile, certificate, 0o600),
		os.WriteFile(options.KeyFile, key, 0o600)); err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(certificate)
	return options, roots
}

// answersWith asks a replica as somebody whom it refuses.
func answersWith(address string, roots *x509.CertPool) error {
	transport := &http.Transport{TLSClientConfig: &tls.Config{
		RootCAs: roots, ServerName: memberapi.ServiceName + "." + clusterv1alpha1.CredentialsNamespace + ".svc",
	}}
	defer transport.CloseIdleConnections()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+address+"/apis", nil)
	if err != nil {
		return err
	}
	response, err := transport.RoundTrip(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusUnauthorized {
		return fmt.Errorf("it answers %s", response.Status)
	}
	return nil
}

// TestAttackLeaseOfTheFleet plays tenants of a fleet who would have none of its processes work, or two: with the rights
// to edit everything, and with all rights.
func TestAttackLeaseOfTheFleet(t *testing.T) {
	w := newWorld(t)
	w.startReplica(t, memberapi.Options{}, "")
	leader := w.leaderOtherThan(t, "")
	grantTo(t, w.fleet, "edits-leases", rbacv1.PolicyRule{
		APIGroups: []string{coordinationv1.GroupName}, Resources: []string{"leases"}, Verbs: []string{"*"},
	}, rbacUser("alice"))
	alice, err := client.New(w.asAlice(), client.Options{Scheme: w.fleet.Scheme()})
	if err != nil {
		t.Fatal(err)
	}
	const refusal = "only the federation's processes"
	meta := metav1.ObjectMeta{Namespace: clusterv1alpha1.CredentialsNamespace, Name: fleetv1alpha1.LeaderLease}
	own := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: meta.Namespace, Name: "other"}}
	eventually(t, "alice may write Leases", func() error { return alice.Create(ctx, own.DeepCopy()) })
	t.Cleanup(func() { _ = w.fleet.Delete(ctx, own) })
	for name, attacker := range map[string]client.Client{"who edits": alice, "an administrator": w.fleet} {
		for verb, attack := range attacksOnLease(attacker, meta) {
			refusedWith(t, attack(), refusal)
			if now, err := w.leader(); err != nil || now != leader {
				t.Errorf("%s %s: the leader is %q, %v; want %q", name, verb, now, err, leader)
			}
		}
	}
	namespace := w.newNamespace(t)
	apply(t, w.fleet, namespace, parse(t, orderedPolicy)[0], nginx(t))
	w.replicasIn(t, namespace, -1, 2)
	// In other namespaces the name means nothing.
	theirs := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: meta.Name}}
	if err := alice.Create(ctx, theirs); err != nil {
		t.Error(err)
	}
	t.Cleanup(func() { _ = alice.Delete(ctx, theirs) })
}

// attacksOnLease are all ways to write the Lease.
func attacksOnLease(attacker client.Client, meta metav1.ObjectMeta) map[string]func() error {
	named := func() *coordinationv1.Lease { return &coordinationv1.Lease{ObjectMeta: meta} }
	return map[string]func() error{
		"updates": func() error {
			return retry.RetryOnConflict(retry.DefaultRetry, func() error {
				lease := named()
				if err := attacker.Get(ctx, client.ObjectKeyFromObject(lease), lease); err != nil {
					return err
				}
				lease.Spec.HolderIdentity = new("mallory")
				lease.Spec.RenewTime = &metav1.MicroTime{Time: time.Now().Add(time.Hour)}
				return attacker.Update(ctx, lease)
			})
		},
		"patches": func() error {
			return attacker.Patch(ctx, named(),
				client.RawPatch(types.MergePatchType, []byte(`{"spec":{"holderIdentity":"mallory"}}`)))
		},
		"deletes":     func() error { return attacker.Delete(ctx, named()) },
		"deletes all": func() error { return attacker.DeleteAllOf(ctx, named(), client.InNamespace(meta.Namespace)) },
		"creates":     func() error { return attacker.Create(ctx, named(), client.DryRunAll) },
	}
}
