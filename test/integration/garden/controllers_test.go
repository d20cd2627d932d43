package garden

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"strings"
	"testing"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	seedmanagementv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/seedmanagement/v1alpha1"
	"github.com/trellis-garden/trellis/pkg/controllermanager/project"
	"github.com/trellis-garden/trellis/test/integration/environment"
)

func TestControllers(t *testing.T) {
	startControllers(t)
	t.Run("bootstrap", testBootstrap)
	t.Run("project", testProject)
	t.Run("namespace of a project", testProjectNamespace)
	t.Run("scheduling", testScheduling)
	t.Run("extensions", testExtensions)
	t.Run("certificates", testCertificates)
}

func testBootstrap(t *testing.T) {
	eventually(t, func() error {
		garden := &gardencorev1beta1.Project{ObjectMeta: metav1.ObjectMeta{Name: "garden"}}
		if err := get(garden); err != nil {
			return err
		}
		if garden.Status.Phase != gardencorev1beta1.ProjectReady {
			return fmt.Errorf("project garden is %q", garden.Status.Phase)
		}
		identity := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "cluster-identity"}}
		if err := get(identity); err != nil {
			return err
		}
		if identity.Data["cluster-identity"] != environment.ClusterIdentity {
			return fmt.Errorf("identity is %q", identity.Data["cluster-identity"])
		}
		return nil
	})
}

func testProject(t *testing.T) {
	ctx := context.Background()
	member := rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "bob"}
	eventually(t, func() error { // until the roles of all users are there
		alice, err := env.ClientFor("alice")
		if err != nil {
			return err
		}
		return client.IgnoreAlreadyExists(alice.Create(ctx, &gardencorev1beta1.Project{
			ObjectMeta: metav1.ObjectMeta{Name: "demo"},
			Spec: gardencorev1beta1.ProjectSpec{
				Members: []gardencorev1beta1.ProjectMember{
					{Subject: member, Role: gardencorev1beta1.ProjectMemberViewer},
				},
			},
		}))
	})
	demo := &gardencorev1beta1.Project{ObjectMeta: metav1.ObjectMeta{Name: "demo"}}
	eventually(t, func() error {
		if err := get(demo); err != nil {
			return err
		}
		if demo.Status.Phase != gardencorev1beta1.ProjectReady || ptr.Deref(demo.Spec.Namespace, "") != "garden-demo" {
			return fmt.Errorf("phase %q, namespace %v", demo.Status.Phase, demo.Spec.Namespace)
		}
		return nil
	})
	if demo.Spec.Owner == nil || demo.Spec.Owner.Name != "alice" {
		t.Errorf("owner = %v, want alice", demo.Spec.Owner)
	}
	viewers := &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "garden-demo", Name: project.ViewerRole}}
	eventually(t, func() error { return get(viewers) })
	if len(viewers.Subjects) != 1 || viewers.Subjects[0].Name != "bob" {
		t.Errorf("viewers = %v, want bob", viewers.Subjects)
	}
	bob, err := env.ClientFor("bob")
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, func() error {
		return bob.List(ctx, &gardencorev1beta1.ShootList{}, client.InNamespace("garden-demo"))
	})
	if err := bob.List(ctx, &corev1.SecretList{}, client.InNamespace("garden-demo")); !apierrors.IsForbidden(err) {
		t.Errorf("a viewer lists secrets: %v", err)
	}
	if err := bob.List(ctx, &gardencorev1beta1.ShootList{}); !apierrors.IsForbidden(err) {
		t.Errorf("a viewer lists the shoots of all projects: %v", err)
	}
}

// The namespace of a project goes with the project. Nobody else deletes it or takes the project's label away.
func testProjectNamespace(t *testing.T) {
	ctx := context.Background()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: newProject(t, "kept")}}
	eventually(t, func() error { // until kube-apiserver knows the policy
		err := env.Client.Delete(ctx, namespace, client.DryRunAll)
		if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "belongs to project kept: delete its shoots") {
			return fmt.Errorf("an administrator deletes the namespace: %v", err)
		}
		return nil
	})
	for name, label := range map[string]string{"the label goes": "null", "another project": `"other"`} {
		patch := fmt.Sprintf(`{"metadata":{"labels":{%q:%s}}}`, gardencorev1beta1.ProjectName, label)
		if err := env.Client.Patch(ctx, namespace, merge(patch), client.DryRunAll); !apierrors.IsForbidden(err) ||
			!strings.Contains(err.Error(), "belongs to project kept: its label") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := env.Client.Patch(ctx, namespace, merge(`{"metadata":{"labels":{"mine":"yes"}}}`)); err != nil {
		t.Errorf("another label: %v", err)
	}
	for name, labels := range map[string]map[string]string{
		"of-no-project": nil, "of-a-project-that-is-gone": {gardencorev1beta1.ProjectName: "gone"},
	} {
		other := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}
		create(t, other)
		if err := env.Client.Delete(ctx, other); err != nil {
			t.Errorf("namespace %s: %v", name, err)
		}
	}

	kept := &gardencorev1beta1.Project{ObjectMeta: metav1.ObjectMeta{Name: "kept"}}
	confirmation := fmt.Sprintf(`{"metadata":{"annotations":{%q:"true"}}}`, gardencorev1beta1.ConfirmationDeletion)
	if err := env.Client.Patch(ctx, kept, merge(confirmation)); err != nil {
		t.Fatal(err)
	}
	if err := env.Client.Delete(ctx, kept); err != nil {
		t.Fatal(err)
	}
	eventually(t, func() error {
		if err := get(namespace); err != nil || namespace.DeletionTimestamp == nil {
			return fmt.Errorf("the namespace did not go with its project: %v", err)
		}
		return nil
	})
}

func testScheduling(t *testing.T) {
	namespace := newProject(t, "sched")
	create(t, newProfile("sched"))
	shoot := newShoot(namespace, "member1", "sched")
	create(t, shoot)
	eventually(t, func() error {
		if err := get(shoot); err != nil {
			return err
		}
		if last := shoot.Status.LastOperation; last == nil ||
			last.State != gardencorev1beta1.LastOperationStatePending ||
			!strings.Contains(last.Description, "No seed fits") {
			return fmt.Errorf("last operation = %+v, want it to say that no seed fits", last)
		}
		return nil
	})
	seed := newSeed("sched", "sched")
	create(t, seed)
	makeReady(t, seed)
	eventually(t, func() error {
		if err := get(shoot); err != nil {
			return err
		}
		if ptr.Deref(shoot.Spec.SeedName, "") != "sched" {
			return fmt.Errorf("seed = %v; last operation: %+v", ptr.Deref(shoot.Spec.SeedName, "none"),
				shoot.Status.LastOperation)
		}
		return nil
	})
	if shoot.Status.LastOperation != nil {
		t.Errorf("last operation = %+v, want none once the shoot has a seed", shoot.Status.LastOperation)
	}
}

func testExtensions(t *testing.T) {
	ctx := context.Background()
	create(t, newSeed("ext", "ext"), &gardencorev1beta1.ControllerDeployment{
		ObjectMeta: metav1.ObjectMeta{Name: "flannel"}, Type: "helm",
		ProviderConfig: runtime.RawExtension{Raw: []byte(`{"chart":"aGVsbG8="}`)},
	})
	eventually(t, func() error { return get(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "seed-ext"}}) })
	registration := &gardencorev1beta1.ControllerRegistration{
		ObjectMeta: metav1.ObjectMeta{Name: "networking-flannel"},
		Spec: gardencorev1beta1.ControllerRegistrationSpec{
			Resources: []gardencorev1beta1.ControllerResource{{Kind: "Network", Type: "flannel"}},
			Deployment: &gardencorev1beta1.ControllerRegistrationDeployment{
				DeploymentRefs: []gardencorev1beta1.DeploymentRef{{Name: "flannel"}},
			},
		},
	}
	create(t, registration)
	installed := func() ([]gardencorev1beta1.ControllerInstallation, error) {
		list := &gardencorev1beta1.ControllerInstallationList{}
		err := env.Client.List(ctx, list, client.MatchingFields{"spec.seedRef.name": "ext"})
		return list.Items, err
	}
	namespace := newProject(t, "ext")
	create(t, newProfile("ext"))
	shoot := newShoot(namespace, "member1", "ext", func(s *gardencorev1beta1.Shoot) { s.Spec.SeedName = new("ext") })
	create(t, shoot)
	eventually(t, func() error {
		items, err := installed()
		if err != nil || len(items) != 1 || items[0].Spec.RegistrationRef.Name != "networking-flannel" ||
			items[0].Spec.DeploymentRef.Name != "flannel" {
			return fmt.Errorf("installations = %+v, %v", items, err)
		}
		return nil
	})
	shoot.Annotations[gardencorev1beta1.ConfirmationDeletion] = "true"
	if err := env.Client.Patch(ctx, shoot, client.Merge); err != nil {
		t.Fatal(err)
	}
	if err := env.Client.Delete(ctx, shoot); err != nil {
		t.Fatal(err)
	}
	eventually(t, func() error {
		if items, err := installed(); err != nil || len(items) > 0 {
			return fmt.Errorf("installations = %+v, %v; want none without shoots", items, err)
		}
		return nil
	})
}

func testCertificates(t *testing.T) {
	gardenlet, err := env.ClientFor("system:bootstrap:abcdef", "system:bootstrappers")
	if err != nil {
		t.Fatal(err)
	}
	create(t, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: metav1.NamespaceSystem, Name: "bootstrap-token-abcdef",
			Labels: map[string]string{seedmanagementv1alpha1.BootstrapSeedLabel: "local"},
		},
		Type: corev1.SecretTypeBootstrapToken,
		StringData: map[string]string{
			"token-id": "abcdef", "token-secret": "0123456789abcdef", "usage-bootstrap-authentication": "true",
			"expiration": time.Now().Add(24 * time.Hour).Format(time.RFC3339),
		},
	})
	for name, test := range map[string]struct {
		organizations []string
		want          certificatesv1.RequestConditionType
	}{
		"good": {[]string{gardencorev1beta1.SeedsGroup}, certificatesv1.CertificateApproved},
		"evil": {[]string{gardencorev1beta1.SeedsGroup, "operators"}, certificatesv1.CertificateDenied},
	} {
		t.Run(name, func(t *testing.T) {
			csr := newRequest(t, name, test.organizations)
			eventually(t, func() error {
				return client.IgnoreAlreadyExists(gardenlet.Create(context.Background(), csr))
			})
			eventually(t, func() error {
				if err := get(csr); err != nil {
					return err
				}
				if len(csr.Status.Conditions) != 1 || csr.Status.Conditions[0].Type != test.want {
					return fmt.Errorf("conditions = %+v, want %s", csr.Status.Conditions, test.want)
				}
				return nil
			})
		})
	}
}

func newRequest(t *testing.T, name string, organizations []string) *certificatesv1.CertificateSigningRequest {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{
		Subject: pkix.Name{CommonName: gardencorev1beta1.SeedUserNamePrefix + "local", Organization: organizations},
	}, key)
	if err != nil {
		t.Fatal(err)
	}
	return &certificatesv1.CertificateSigningRequest{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: certificatesv1.CertificateSigningRequestSpec{
			Request:    pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}),
			SignerName: certificatesv1.KubeAPIServerClientSignerName,
			Usages:     []certificatesv1.KeyUsage{certificatesv1.UsageClientAuth, certificatesv1.UsageDigitalSignature},
		},
	}
}
