package garden

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	authenticationv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/authentication/v1alpha1"
	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
)

func TestShootIsCompleted(t *testing.T) {
	namespace := newProject(t, "complete")
	create(t, newProfile("complete"))
	shoot := newShoot(namespace, "member1", "complete")
	create(t, shoot)

	if got := shoot.Annotations[gardencorev1beta1.GardenerCreatedBy]; got != "admin" {
		t.Errorf("created by = %q, want admin", got)
	}
	if got := shoot.Spec.Kubernetes.Version; got != "1.36.3" {
		t.Errorf("version = %q, want the newest supported one, 1.36.3", got)
	}
	image := shoot.Spec.Provider.Workers[0].Machine.Image
	if image == nil || image.Name != "debian" || ptr.Deref(image.Version, "") != "12.12.0" {
		t.Errorf("machine image = %+v, want debian 12.12.0", image)
	}
	if got := ptr.Deref(shoot.Spec.Provider.Workers[0].Machine.Architecture, ""); got != "amd64" {
		t.Errorf("architecture = %q, want amd64", got)
	}
	if got := ptr.Deref(shoot.Spec.Purpose, ""); got != gardencorev1beta1.ShootPurposeEvaluation {
		t.Errorf("purpose = %q, want the default", got)
	}
	if shoot.Generation != 1 {
		t.Errorf("generation = %d, want 1", shoot.Generation)
	}
}

func TestShootIsRefused(t *testing.T) {
	namespace := newProject(t, "refuse")
	create(t, newProfile("refuse"))
	worker := func(change func(*gardencorev1beta1.Worker)) func(*gardencorev1beta1.Shoot) {
		return func(s *gardencorev1beta1.Shoot) { change(&s.Spec.Provider.Workers[0]) }
	}
	tests := map[string]struct {
		change func(*gardencorev1beta1.Shoot)
		path   string
		says   string
	}{
		"unknown cloud profile": {
			func(s *gardencorev1beta1.Shoot) { s.Spec.CloudProfile.Name = "nowhere" }, "spec.cloudProfile.name",
			"Not found",
		},
		"unknown version": {
			func(s *gardencorev1beta1.Shoot) { s.Spec.Kubernetes.Version = "1.30.0" }, "spec.kubernetes.version",
			"1.36.3",
		},
		"unknown region": {func(s *gardencorev1beta1.Shoot) { s.Spec.Region = "mars" }, "spec.region", "refuse"},
		"unknown machine type": {
			worker(func(w *gardencorev1beta1.Worker) { w.Machine.Type = "huge" }),
			"spec.provider.workers[0].machine.type", "local",
		},
		"unknown machine image": {worker(func(w *gardencorev1beta1.Worker) {
			w.Machine.Image = &gardencorev1beta1.ShootMachineImage{Name: "arch"}
		}), "spec.provider.workers[0].machine.image.name", "debian"},
		"unknown zone": {
			worker(func(w *gardencorev1beta1.Worker) { w.Zones = []string{"9"} }), "spec.provider.workers[0].zones[0]",
			`"0"`,
		},
		"minimum over maximum": {
			worker(func(w *gardencorev1beta1.Worker) { w.Minimum = 3 }), "spec.provider.workers[0]", "",
		},
		"missing credentials": {
			func(s *gardencorev1beta1.Shoot) { s.Spec.CredentialsBindingName = new("none") },
			"spec.credentialsBindingName", "Not found",
		},
		"name too long": {
			func(s *gardencorev1beta1.Shoot) { s.Name = "a-name-that-is-far-too-long" }, "metadata.name", "",
		},
		"overlapping networks": {func(s *gardencorev1beta1.Shoot) {
			s.Spec.Networking.Pods, s.Spec.Networking.Services = new("10.5.0.0/16"), new("10.5.1.0/24")
		}, "spec.networking", ""},
		"another provider": {
			func(s *gardencorev1beta1.Shoot) { s.Spec.Provider.Type = "aws" }, "spec.provider.type", "local",
		},
		"seed that is not there": {
			func(s *gardencorev1beta1.Shoot) { s.Spec.SeedName = new("nowhere") }, "spec.seedName", "Not found",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			err := env.Client.Create(context.Background(), newShoot(namespace, "bad", "refuse", test.change))
			if !apierrors.IsInvalid(err) {
				t.Fatalf("error = %v, want the API to call it invalid", err)
			}
			if !strings.Contains(err.Error(), test.path) || !strings.Contains(err.Error(), test.says) {
				t.Errorf("error = %v\nwant it to name %s and to say %q", err, test.path, test.says)
			}
		})
	}
}

func TestShootNeedsAProject(t *testing.T) {
	create(t, newProfile("orphan"))
	create(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "no-project"}})
	err := env.Client.Create(context.Background(), newShoot("no-project", "member1", "orphan"))
	if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "belongs to no project") {
		t.Errorf("error = %v", err)
	}
}

func TestImmutableFields(t *testing.T) {
	namespace := newProject(t, "fixed")
	create(t, newProfile("fixed"))
	shoot := newShoot(namespace, "member1", "fixed")
	create(t, shoot)
	shoot.Spec.Region = "elsewhere"
	err := env.Client.Update(context.Background(), shoot)
	if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "spec.region") {
		t.Errorf("error = %v, want spec.region to be immutable", err)
	}
}

func TestStatusAndBindingSubresources(t *testing.T) {
	ctx := context.Background()
	namespace := newProject(t, "halves")
	create(t, newProfile("halves"), newSeed("halves", "halves"))
	shoot := newShoot(namespace, "member1", "halves")
	create(t, shoot)

	// The status subresource leaves the spec alone.
	shoot.Spec.Purpose = new(gardencorev1beta1.ShootPurposeProduction)
	shoot.Status.TechnicalID = "shoot--halves--member1"
	if err := env.Client.Status().Update(ctx, shoot); err != nil {
		t.Fatal(err)
	}
	if shoot.Status.TechnicalID == "" ||
		ptr.Deref(shoot.Spec.Purpose, "") != gardencorev1beta1.ShootPurposeEvaluation || shoot.Generation != 1 {
		t.Errorf("after a write of the status: technical ID %q, purpose %s, generation %d", shoot.Status.TechnicalID,
			ptr.Deref(shoot.Spec.Purpose, ""), shoot.Generation)
	}

	// The object itself leaves the status alone.
	shoot.Spec.Purpose = new(gardencorev1beta1.ShootPurposeProduction)
	shoot.Status.TechnicalID = ""
	if err := env.Client.Update(ctx, shoot); err != nil {
		t.Fatal(err)
	}
	if shoot.Status.TechnicalID == "" || shoot.Generation != 2 {
		t.Errorf("after a write of the spec: technical ID %q, generation %d", shoot.Status.TechnicalID,
			shoot.Generation)
	}

	// The binding subresource takes the seed only.
	shoot.Spec.SeedName = new("halves")
	shoot.Spec.Purpose = new(gardencorev1beta1.ShootPurposeTesting)
	if err := env.Client.SubResource("binding").Update(ctx, shoot); err != nil {
		t.Fatal(err)
	}
	if ptr.Deref(shoot.Spec.SeedName, "") != "halves" ||
		ptr.Deref(shoot.Spec.Purpose, "") != gardencorev1beta1.ShootPurposeProduction || shoot.Generation != 3 {
		t.Errorf("after binding: seed %v, purpose %s, generation %d", shoot.Spec.SeedName,
			ptr.Deref(shoot.Spec.Purpose, ""), shoot.Generation)
	}
	if got := shoot.Labels[gardencorev1beta1.LabelPrefixSeedName+"halves"]; got != "true" {
		t.Errorf("labels = %v, want one for the seed", shoot.Labels)
	}
	if got := ptr.Deref(shoot.Spec.DNS, gardencorev1beta1.DNS{}).Domain; ptr.Deref(got,
		"") != "member1.halves.shoots.example" {
		t.Errorf("domain = %v, want one below the seed's default domain", got)
	}

	// Seeds select their shoots by field.
	shoots := &gardencorev1beta1.ShootList{}
	if err := env.Client.List(ctx, shoots, client.MatchingFields{"spec.seedName": "halves"}); err != nil {
		t.Fatal(err)
	}
	if len(shoots.Items) != 1 {
		t.Errorf("%d shoots with spec.seedName=halves, want 1", len(shoots.Items))
	}

	// The seed is in use now.
	err := env.Client.Delete(ctx, &gardencorev1beta1.Seed{ObjectMeta: metav1.ObjectMeta{Name: "halves"}})
	if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "shoot garden-halves/member1") {
		t.Errorf("deletion of the seed: %v", err)
	}
}

func TestDeletionNeedsConfirmation(t *testing.T) {
	ctx := context.Background()
	namespace := newProject(t, "confirm")
	create(t, newProfile("confirm"))
	shoot := newShoot(namespace, "member1", "confirm")
	create(t, shoot)

	if err := env.Client.Delete(ctx, newProfile("confirm")); !apierrors.IsForbidden(err) ||
		!strings.Contains(err.Error(), "shoot garden-confirm/member1") {
		t.Errorf("deletion of a cloud profile in use: %v", err)
	}
	if err := env.Client.Delete(ctx, shoot); !apierrors.IsForbidden(err) ||
		!strings.Contains(err.Error(), gardencorev1beta1.ConfirmationDeletion) {
		t.Errorf("deletion without confirmation: %v", err)
	}
	if err := env.Client.DeleteAllOf(ctx, &gardencorev1beta1.Shoot{},
		client.InNamespace(namespace)); !apierrors.IsForbidden(err) {
		t.Errorf("deletion of all without confirmation: %v", err)
	}
	shoot.Annotations[gardencorev1beta1.ConfirmationDeletion] = "true"
	if err := env.Client.Update(ctx, shoot); err != nil {
		t.Fatal(err)
	}
	if err := env.Client.Delete(ctx, shoot); err != nil {
		t.Errorf("deletion with confirmation: %v", err)
	}
	if err := env.Client.Delete(ctx, newProfile("confirm")); err != nil {
		t.Errorf("deletion of a cloud profile that is no longer in use: %v", err)
	}
}

func TestAdminKubeconfigSubresource(t *testing.T) {
	ctx := context.Background()
	namespace := newProject(t, "access")
	create(t, newProfile("access"))
	shoot := newShoot(namespace, "member1", "access")
	create(t, shoot)
	request := func() (*authenticationv1alpha1.AdminKubeconfigRequest, error) {
		asked := &authenticationv1alpha1.AdminKubeconfigRequest{}
		return asked, env.Client.SubResource("adminkubeconfig").Create(ctx, shoot, asked)
	}
	if _, err := request(); !apierrors.IsInvalid(err) {
		t.Errorf("kubeconfig of a shoot without addresses: %v", err)
	}

	caPEM, keyPEM, pool := clientCA(t)
	create(t,
		&gardencorev1beta1.InternalSecret{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "member1.ca-client"},
			StringData: map[string]string{"ca.crt": caPEM, "ca.key": keyPEM},
		},
		&corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "member1.ca-cluster"},
			Data:       map[string]string{"ca.crt": caPEM},
		},
	)
	shoot.Status.AdvertisedAddresses = []gardencorev1beta1.ShootAdvertisedAddress{
		{Name: "external", URL: "https://api.member1.access.example"},
	}
	if err := env.Client.Status().Update(ctx, shoot); err != nil {
		t.Fatal(err)
	}
	asked, err := request()
	if err != nil {
		t.Fatal(err)
	}
	config, err := clientcmd.Load(asked.Status.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	block, _ := pem.Decode(config.AuthInfos["garden-access--member1"].ClientCertificateData)
	certificate, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := certificate.Verify(x509.VerifyOptions{
		Roots: pool, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}); err != nil {
		t.Errorf("certificate does not verify: %v", err)
	}
	if got := certificate.Subject.String(); got != "CN=gardener.cloud:admin:admin,O=gardener.cloud:system:admins" {
		t.Errorf("subject = %s", got)
	}
}

func clientCA(t *testing.T) (certificatePEM, keyPEM string, pool *x509.CertPool) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "ca-client"}, NotBefore: time.Now().Add(-time.Hour),
		NotAfter: time.Now().Add(48 * time.Hour),
		IsCA:     true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	certificatePEM = string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
	pool = x509.NewCertPool()
	pool.AppendCertsFromPEM([]byte(certificatePEM))
	return certificatePEM, string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER})), pool
}
