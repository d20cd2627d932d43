package garden

import (
	"context"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	securityv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/security/v1alpha1"
)

// TestAttackMembersThroughServiceAccounts plays an admin of a project who wants to decide who is a member of it: with a
// service account that manages members, with one of another project, and with the token of one that somebody else made
// a manager.
func TestAttackMembersThroughServiceAccounts(t *testing.T) {
	const name = "robots"
	startControllerManager(t)
	newPeople(t, name)
	clients := clientsOf(t, person("admin", name), person("owner", name))
	admin, owner := clients[person("admin", name)], clients[person("owner", name)]
	account := func(namespace string) rbacv1.Subject {
		return rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: "robot"}
	}
	own, foreign := account(gardencorev1beta1.ProjectNamePrefix+name), account("garden-other")
	eventually(t, func() error { return changesProject(name, adds(own, gardencorev1beta1.ProjectMemberAdmin))(admin) })
	for _, role := range []string{
		gardencorev1beta1.ProjectMemberUserAccessManager, gardencorev1beta1.ProjectMemberServiceAccountManager,
		"extension:reader",
	} {
		wantForbidden(t, "role "+role+" for an own service account", changesProject(name, adds(own, role))(admin))
	}
	wantForbidden(t, "a service account of elsewhere",
		changesProject(name, adds(foreign, gardencorev1beta1.ProjectMemberViewer))(admin))
	wantForbidden(t, "the project for an own service account",
		changesProject(name, func(spec *gardencorev1beta1.ProjectSpec) {
			spec.Owner = &own
			for i := range spec.Members {
				if spec.Members[i].Role == gardencorev1beta1.ProjectMemberOwner {
					spec.Members[i].Role = gardencorev1beta1.ProjectMemberViewer
				}
			}
		})(admin))

	token := makes(tokenOf(own))
	eventually(t, func() error { return token(owner) })
	eventually(t, func() error { // until the policy acts
		if err := token(admin); !apierrors.IsForbidden(err) {
			return fmt.Errorf("the token of a service account by a Secret: %v, want forbidden", err)
		}
		return nil
	})
	if err := makes(secretIn(own.Namespace, "other"))(admin); err != nil {
		t.Errorf("any other Secret: %v", err)
	}
}

// TestAttackObjectsWithoutEnd plays an admin of a project who fills the garden's etcd with small objects.
func TestAttackObjectsWithoutEnd(t *testing.T) {
	const name = "hoarders"
	startControllerManager(t)
	newPeople(t, name)
	namespace := gardencorev1beta1.ProjectNamePrefix + name
	owner := clientsOf(t, person("owner", name))[person("owner", name)]
	meta := metav1.ObjectMeta{Namespace: namespace, GenerateName: "one-more-"}
	objects := map[corev1.ResourceName]client.Object{
		"count/secrets": &corev1.Secret{ObjectMeta: meta}, "count/configmaps": &corev1.ConfigMap{ObjectMeta: meta},
		"count/serviceaccounts":                 &corev1.ServiceAccount{ObjectMeta: meta},
		"count/roles.rbac.authorization.k8s.io": &rbacv1.Role{ObjectMeta: meta},
		"count/quotas.core.gardener.cloud":      &gardencorev1beta1.Quota{ObjectMeta: meta, Spec: quotaSpec()},
		"count/workloadidentities.security.gardener.cloud": &securityv1alpha1.WorkloadIdentity{ObjectMeta: meta,
			Spec: securityv1alpha1.WorkloadIdentitySpec{
				Audiences: []string{"cloud"}, TargetSystem: securityv1alpha1.TargetSystem{Type: "local"},
			}},
	}
	more := func(object client.Object) error {
		return owner.Create(context.Background(), object.DeepCopyObject().(client.Object))
	}
	for _, object := range objects {
		eventually(t, func() error { return more(object) }) // until the owner is one
	}
	quota := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "gardener"}}
	eventually(t, func() error { // as after as many objects as are allowed
		if err := get(quota); err != nil {
			return err
		}
		if used := quota.Status.Used["count/secrets"]; used.Value() != 2 {
			return fmt.Errorf("%s Secrets are counted, want that of the project and the owner's", &used)
		}
		quota.Status.Used = quota.Status.Hard
		return env.Client.Status().Update(context.Background(), quota)
	})
	for what, object := range objects {
		eventually(t, func() error {
			if err := more(object); !apierrors.IsForbidden(err) {
				return fmt.Errorf("%s: one more: %v, want forbidden; the quota is %v", what, err, quota.Status.Hard)
			}
			return nil
		})
	}
}

// tokenOf is a Secret into which Kubernetes writes a token.
func tokenOf(account rbacv1.Subject) *corev1.Secret {
	secret := secretIn(account.Namespace, "stolen")
	secret.Type, secret.Annotations = corev1.SecretTypeServiceAccountToken,
		map[string]string{corev1.ServiceAccountNameKey: account.Name}
	return secret
}

func wantForbidden(t *testing.T, what string, err error) {
	t.Helper()
	if !apierrors.IsForbidden(err) {
		t.Errorf("%s: %v, want forbidden", what, err)
	}
}

// attackForgedStatus plays a tenant who creates a shoot with a status, and a gardenlet that writes one with which it,
// or who comes after it, would take another's control plane for that of its own shoot. It is part of TestSeedsMatrix,
// which has seeds.
func attackForgedStatus(t *testing.T, tenants [2]tenant) {
	ctx, own, other := context.Background(), tenants[0], tenants[1]
	shoot := newShoot(own.namespace, "forged", "seedauth", func(s *gardencorev1beta1.Shoot) {
		s.Spec.SeedName = &own.seed
		s.Status = gardencorev1beta1.ShootStatus{
			TechnicalID: "shoot--" + other.project + "--shoot", SeedName: &other.seed, UID: "theirs",
		}
	})
	create(t, shoot)
	if status := shoot.Status; status.TechnicalID != "" || status.SeedName != nil || status.UID != "" {
		t.Errorf("a new shoot has the status that its creator gave it: %+v", status)
	}
	writes := func(status string) error {
		return own.gardenlet.Status().Patch(ctx, shoot.DeepCopy(), merge(fmt.Sprintf(`{"status":{%s}}`, status)))
	}
	technicalID := gardencorev1beta1.TechnicalID(own.project, shoot.Name)
	eventually(t, func() error { return writes(`"hibernated":false`) }) // until the authorizer knows the shoot
	for _, forged := range []string{
		`"technicalID":"garden"`, `"technicalID":"kube-system"`, `"technicalID":"shoot--x"`,
		fmt.Sprintf(`"technicalID":"shoot--%s--shoot"`, other.project), `"technicalID":"` + technicalID + `-2"`,
		fmt.Sprintf(`"seedName":%q`, other.seed), `"uid":"theirs"`,
	} {
		if err := writes(forged); !apierrors.IsInvalid(err) {
			t.Errorf("status %s: %v, want it refused as invalid", forged, err)
		}
	}
	if err := writes(fmt.Sprintf(`"technicalID":%q,"uid":%q,"seedName":%q`, technicalID, shoot.UID,
		own.seed)); err != nil {
		t.Errorf("the true status: %v", err)
	}
}
