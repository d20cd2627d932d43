package garden

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	seedmanagementv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/seedmanagement/v1alpha1"
	"github.com/trellis-garden/trellis/pkg/controllermanager/bootstrap"
)

// forgery is a write of somebody who has nothing but a seed's credential. Says is part of the refusal, empty where the
// write is one that gardenlet makes.
type forgery struct {
	what   string
	object client.Object
	says   string
}

// attackedTenant is a seed with a project, and with a shoot of the operators that is to become the seed "child-<name>".
func attackedTenant(t *testing.T, name string) tenant {
	t.Helper()
	eventually(t, func() error { return bootstrap.Ensure(context.Background(), env.Client) })
	if err := env.Client.Create(context.Background(), newProfile("seedauth")); client.IgnoreAlreadyExists(err) != nil {
		t.Fatal(err)
	}
	who := newTenant(t, name)
	awaitRights(t, who)
	child := newGardenShoot(t, "child-"+name)
	if err := env.Client.SubResource("binding").Patch(context.Background(), child,
		merge(fmt.Sprintf(`{"spec":{"seedName":%q}}`, name))); err != nil {
		t.Fatal(err)
	}
	create(t, &seedmanagementv1alpha1.ManagedSeed{
		ObjectMeta: metav1.ObjectMeta{Namespace: child.Namespace, Name: child.Name},
		Spec: seedmanagementv1alpha1.ManagedSeedSpec{
			Shoot:     &seedmanagementv1alpha1.Shoot{Name: child.Name},
			Gardenlet: seedmanagementv1alpha1.GardenletConfig{Config: configOfShoot(t, nil)},
		},
	})
	eventually(t, func() error {
		return who.gardenlet.Get(context.Background(), client.ObjectKeyFromObject(child),
			&seedmanagementv1alpha1.ManagedSeed{})
	})
	return who
}

// secretOf makes a Secret of a type with labels and data.
func secretOf(namespace, name string, kind corev1.SecretType, labels map[string]string, data ...string) *corev1.Secret {
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: labels}, Type: kind,
		StringData: map[string]string{},
	}
	for i := 0; i < len(data); i += 2 {
		secret.StringData[data[i]] = data[i+1]
	}
	return secret
}

// forgedObjects returns what the gardenlet of a seed tries, by which it would get more than is its own.
func forgedObjects(who tenant) []forgery {
	const serviceAccount = "kubernetes.io/service-account.name"
	project, own := who.namespace, "seed-"+who.seed
	marked := func(object client.Object, change func(client.Object)) client.Object {
		change(object)
		return object
	}
	annotate := func(o client.Object) { o.SetAnnotations(map[string]string{serviceAccount: "robot"}) }
	finalize := func(o client.Object) { o.SetFinalizers([]string{"trellis.garden/held"}) }
	label := func(key, value string) func(client.Object) {
		return func(o client.Object) { o.SetLabels(map[string]string{key: value}) }
	}
	belong := func(kind, name string) func(client.Object) {
		return func(o client.Object) {
			o.SetOwnerReferences([]metav1.OwnerReference{
				{APIVersion: gardencorev1beta1.SchemeGroupVersion.String(), Kind: kind, Name: name, UID: "1"},
			})
		}
	}
	secret := func() client.Object { return secretOf(project, "shoot.kubeconfig", "", nil) }
	settings := func() client.Object {
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: project, Name: "shoot.ca-kubelet"}}
	}
	account := func() client.Object {
		return &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: own, Name: "extension-new"}}
	}
	lease := func() client.Object {
		return &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: own, Name: "extension"}}
	}
	return []forgery{
		{
			"a Secret of its shoot", secretOf(project, "shoot.monitoring", "",
				map[string]string{"gardener.cloud/role": "monitoring", "shoot.gardener.cloud/name": "shoot"}), "",
		},
		{
			"a pair of keys from before", secretOf(project, "shoot.ssh-keypair.old", "",
				map[string]string{"gardener.cloud/role": "ssh-keypair"}), "",
		},
		{"a ConfigMap of its shoot", marked(settings(), label("gardener.cloud/role", "ca-kubelet")), ""},
		{"the account of an extension", account(), ""},
		{
			"the account of a managed seed",
			&corev1.ServiceAccount{
				ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: "gardenlet-bootstrap-child-" + who.seed},
			}, "",
		},
		{"a lease of an extension", lease(), ""},
		// Two policies deny this one, and either may answer.
		{
			"the token of a service account",
			marked(secretOf(project, "shoot.kubeconfig", corev1.SecretTypeServiceAccountToken, nil), annotate),
			"denied request",
		},
		{"the token of an extension", marked(secretOf(own, "mine", corev1.SecretTypeServiceAccountToken, nil),
			func(o client.Object) {
				o.SetAnnotations(map[string]string{serviceAccount: "extension"})
			}), "type: Secrets made by seeds"},
		{
			"a bootstrap token elsewhere", secretOf(project, "shoot.kubeconfig", corev1.SecretTypeBootstrapToken, nil),
			"type: Secrets made by seeds",
		},
		{"an annotated Secret", marked(secret(), annotate), "metadata.annotations"},
		{"a finalized Secret", marked(secret(), finalize), "metadata.finalizers"},
		{"an owned Secret", marked(secret(), belong("Project", who.project)), "metadata.ownerReferences"},
		{"a Secret with a domain", marked(secret(), label("gardener.cloud/role", "default-domain")), "metadata.labels"},
		{"a Secret of another shoot", marked(secret(), label("shoot.gardener.cloud/name", "other")), "metadata.labels"},
		{
			"a bucket's Secret with a role",
			secretOf("garden", "generated-bucket-bucket-"+who.seed, "",
				map[string]string{"gardener.cloud/role": "default-domain"}), "metadata.labels",
		},
		{
			"distances of regions", marked(settings(), label("scheduling.gardener.cloud/purpose", "region-config")),
			"metadata.labels",
		},
		{"a finalized ConfigMap", marked(settings(), finalize), "metadata.finalizers"},
		{"an owned ServiceAccount", marked(account(), belong("Seed", who.seed)), "metadata.ownerReferences"},
		{"an annotated ServiceAccount", marked(account(), annotate), "metadata.annotations"},
		{"a labelled Lease", marked(lease(), label("a", "b")), "metadata.labels"},
		{"an owned Lease", marked(lease(), belong("Seed", who.seed)), "metadata.ownerReferences"},
		{
			"a Secret whose name is not known yet",
			&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: project, GenerateName: "shoot.kubeconfig"}},
			"does not belong",
		},
		{
			"an account whose name is not known yet",
			&corev1.ServiceAccount{
				ObjectMeta: metav1.ObjectMeta{Namespace: "garden", GenerateName: "gardenlet-bootstrap-"},
			}, "does not belong",
		},
		{"a Secret of another shoot, by its name", secretOf(project, "other.kubeconfig", "", nil), "does not belong"},
		{
			"an account of another managed seed",
			&corev1.ServiceAccount{
				ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: "gardenlet-bootstrap-other"},
			}, "does not belong",
		},
	}
}

// forgedTokens returns what the gardenlet tries with bootstrap tokens.
func forgedTokens(who tenant) []forgery {
	child := "child-" + who.seed
	name := seedmanagementv1alpha1.BootstrapTokenSecretName(child)
	bound := map[string]string{seedmanagementv1alpha1.BootstrapSeedLabel: child}
	data := []string{
		"token-id", seedmanagementv1alpha1.BootstrapTokenID(child), "token-secret", "0123456789abcdef",
		"usage-bootstrap-authentication", "true", "expiration", "2099-01-01T00:00:00Z",
	}
	with := func(more ...string) []string { return append(data[:len(data):len(data)], more...) }
	token := func(name string, labels map[string]string, data ...string) client.Object {
		return secretOf("kube-system", name, corev1.SecretTypeBootstrapToken, labels, data...)
	}
	other := maps.Clone(bound)
	other[seedmanagementv1alpha1.BootstrapSeedLabel] = "auth-other"
	more := maps.Clone(bound)
	more["gardener.cloud/role"] = "default-domain"
	return []forgery{
		{"the token of its managed seed", token(name, bound, data...), ""},
		{"a token for any seed", token(name, nil, data...), "need the label"},
		{"a token for another seed", token(name, other, data...), "need the label"},
		{
			"a token for itself", token(name, map[string]string{seedmanagementv1alpha1.BootstrapSeedLabel: who.seed},
				data...), "need the label",
		},
		{"another's token", token("bootstrap-token-ffffff", bound, data...), "does not belong"},
		{
			"a token of more groups", token(name, bound,
				with("auth-extra-groups", "system:bootstrappers:operators")...), "no groups",
		},
		{"a token for signing", token(name, bound, with("usage-bootstrap-signing", "true")...), "no groups"},
		{"a token that never ends", token(name, bound, data[:6]...), "no groups"},
		{"a labelled token", token(name, more, data...), "metadata.labels"},
		{"no token at all", secretOf("kube-system", name, "", bound, data...), "type: Secrets made by seeds"},
	}
}

// forgedEvents returns events about what is the seed's, and what is not.
func forgedEvents(who tenant) []forgery {
	core := gardencorev1beta1.SchemeGroupVersion.String()
	about := func(apiVersion, kind, namespace, name string) corev1.ObjectReference {
		return corev1.ObjectReference{APIVersion: apiVersion, Kind: kind, Namespace: namespace, Name: name}
	}
	event := func(reference corev1.ObjectReference) client.Object {
		in := reference.Namespace
		if in == "" {
			in = "default"
		}
		return &corev1.Event{
			ObjectMeta: metav1.ObjectMeta{Namespace: in, GenerateName: "attack-"}, InvolvedObject: reference,
			Reason: "Attack", Type: "Warning",
		}
	}
	regarding := func(reference corev1.ObjectReference) client.Object {
		return &eventsv1.Event{
			ObjectMeta: metav1.ObjectMeta{Namespace: reference.Namespace, GenerateName: "attack-"},
			Regarding:  reference, Reason: "Attack", Type: "Warning",
			Action: "Attack", ReportingController: "attacker", ReportingInstance: "attacker",
			EventTime: metav1.NowMicro(),
		}
	}
	return []forgery{
		{"an event about its shoot", event(about(core, "Shoot", who.namespace, "shoot")), ""},
		{"a new event about its shoot", regarding(about(core, "Shoot", who.namespace, "shoot")), ""},
		{"an event about its seed", event(about(core, "Seed", "", who.seed)), ""},
		{"an event about a Secret", event(about("v1", "Secret", who.namespace, "private")), "events of seeds"},
		{
			"an event about a binding", event(about("security.gardener.cloud/v1alpha1", "CredentialsBinding",
				who.namespace, "local")), "events of seeds",
		},
		{"an event about another's shoot", event(about(core, "Shoot", "garden", "other")), "events of seeds"},
		{"an event about another seed", event(about(core, "Seed", "", "auth-other")), "events of seeds"},
		{"a new event about another's shoot", regarding(about(core, "Shoot", "garden", "other")), "events of seeds"},
		{"an event about nothing", event(about("", "", who.namespace, "")), "events of seeds"},
	}
}

// try makes a write on trial, and says what is wrong with the answer.
func (a forgery) try(who client.Client) error {
	err := who.Create(context.Background(), a.object.DeepCopyObject().(client.Object), client.DryRunAll)
	switch {
	case a.says == "" && err != nil:
		return fmt.Errorf("%s: refused: %w", a.what, err)
	case a.says != "" && (!apierrors.IsForbidden(err) || !strings.Contains(err.Error(), a.says)):
		return fmt.Errorf("%s: %v, want it forbidden with %q", a.what, err, a.says)
	}
	return nil
}

// TestAttackObjects has a gardenlet create, and change, what others act upon: tokens of service accounts, objects that
// controllers select by labels, that hold up deletions, or that the garbage collector follows.
func TestAttackObjects(t *testing.T) {
	who := attackedTenant(t, "objects")
	first := forgery{
		"a policy that is known", secretOf(who.namespace, "shoot.kubeconfig", corev1.SecretTypeBootstrapToken, nil),
		"type: Secrets made by seeds",
	}
	eventually(t, func() error { return first.try(who.gardenlet) })
	for _, forgeries := range [][]forgery{forgedObjects(who), forgedTokens(who), forgedEvents(who)} {
		for _, forgery := range forgeries {
			if err := forgery.try(who.gardenlet); err != nil {
				t.Error(err)
			}
		}
	}
	t.Run("updates", func(t *testing.T) { attackByUpdate(t, who) })
	t.Run("namespace", func(t *testing.T) { attackByNamespace(t) })
	t.Run("certificates", func(t *testing.T) { attackByRequest(t, who) })
	t.Run("extension", func(t *testing.T) { attackByExtension(t, who) })
	t.Run("tokens", func(t *testing.T) { attackByToken(t, who) })
	t.Run("matrix", func(t *testing.T) { attackBeyondMatrix(t, who) })
}

// attackByUpdate changes what gardenlet has made well before, and what is its Lease.
func attackByUpdate(t *testing.T, who tenant) {
	ctx := context.Background()
	secret := secretOf(who.namespace, "shoot.kubeconfig", "", nil)
	if err := who.gardenlet.Create(ctx, secret); err != nil {
		t.Fatal(err)
	}
	// What somebody else adds stays, and holds up no update of the data.
	if err := env.Client.Patch(ctx, secret,
		merge(`{"metadata":{"labels":{"team":"blue"},"annotations":{"note":"x"},"finalizers":["example.com/kept"]}}`)); err != nil {
		t.Fatal(err)
	}
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: leases, Name: who.seed}}
	for _, test := range []struct {
		object      client.Object
		patch, says string
	}{
		{secret, `{"stringData":{"kubeconfig":"x"}}`, ""},
		{secret, `{"metadata":{"labels":{"team":"red"}}}`, "metadata.labels"},
		{secret, `{"metadata":{"annotations":{"kubernetes.io/service-account.name":"robot"}}}`, "metadata.annotations"},
		{secret, `{"metadata":{"finalizers":[]}}`, "metadata.finalizers"},
		{secret, `{"metadata":{"finalizers":["example.com/kept","mine/held"]}}`, "metadata.finalizers"},
		{
			secret,
			fmt.Sprintf(`{"metadata":{"ownerReferences":[{"apiVersion":"core.gardener.cloud/v1beta1","kind":"Project","name":%q,"uid":"1"}]}}`, who.project), "metadata.ownerReferences",
		},
		{
			lease,
			fmt.Sprintf(`{"metadata":{"ownerReferences":[{"apiVersion":"core.gardener.cloud/v1beta1","kind":"Seed","name":%q,"uid":"1"}]}}`, who.seed), "",
		},
		{
			lease,
			`{"metadata":{"ownerReferences":[{"apiVersion":"core.gardener.cloud/v1beta1","kind":"Seed","name":"other","uid":"1"}]}}`, "metadata.ownerReferences",
		},
		{
			lease,
			`{"metadata":{"ownerReferences":[{"apiVersion":"core.gardener.cloud/v1beta1","kind":"Project","name":"other","uid":"1"}]}}`, "metadata.ownerReferences",
		},
	} {
		err := who.gardenlet.Patch(ctx, test.object.DeepCopyObject().(client.Object), merge(test.patch),
			client.DryRunAll)
		if test.says == "" && err != nil ||
			test.says != "" && (!apierrors.IsForbidden(err) || !strings.Contains(err.Error(), test.says)) {
			t.Errorf("%T %s: %v, want %q", test.object, test.patch, err, test.says)
		}
	}
	if err := env.Client.Patch(ctx, secret, merge(`{"metadata":{"finalizers":null}}`)); err != nil {
		t.Error(err)
	}
}

// attackByNamespace founds the namespace of a seed as that of a project.
func attackByNamespace(t *testing.T) {
	gardenlet, err := env.ClientFor(gardencorev1beta1.SeedUserNamePrefix+"attack-new", gardencorev1beta1.SeedsGroup)
	if err != nil {
		t.Fatal(err)
	}
	namespace := func(labels map[string]string) client.Object {
		return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "seed-attack-new", Labels: labels}}
	}
	for _, forgery := range []forgery{
		{"its namespace", namespace(map[string]string{"gardener.cloud/role": "seed"}), ""},
		{"its namespace, without a label", namespace(nil), ""},
		{
			"a project's namespace", namespace(map[string]string{
				"gardener.cloud/role": "project", "project.gardener.cloud/name": "garden",
			}), "metadata.labels",
		},
		{
			"a namespace without policies",
			namespace(map[string]string{"pod-security.kubernetes.io/enforce": "privileged"}), "metadata.labels",
		},
	} {
		if err := forgery.try(gardenlet); err != nil {
			t.Error(err)
		}
	}
}

// attackByRequest asks other signers for certificates, with the credential of a gardenlet and of a bootstrap token.
func attackByRequest(t *testing.T, who tenant) {
	token, err := env.ClientFor("system:bootstrap:abcde0", "system:bootstrappers")
	if err != nil {
		t.Fatal(err)
	}
	for asker, asks := range map[string]client.Client{"gardenlet": who.gardenlet, "bootstrap token": token} {
		request := func(signer string, change ...func(client.Object)) client.Object {
			csr := newRequest(t, "attack", []string{gardencorev1beta1.SeedsGroup})
			csr.Spec.SignerName = signer
			for _, c := range change {
				c(csr)
			}
			return csr
		}
		for _, forgery := range []forgery{
			{asker + ": a client certificate", request(certificatesv1.KubeAPIServerClientSignerName), ""},
			{asker + ": a kubelet's", request(certificatesv1.KubeAPIServerClientKubeletSignerName), "spec.signerName"},
			{asker + ": a serving one", request(certificatesv1.KubeletServingSignerName), "spec.signerName"},
			{asker + ": one of somebody's", request("example.com/signer"), "spec.signerName"},
			{
				asker + ": one that is held", request(certificatesv1.KubeAPIServerClientSignerName,
					func(o client.Object) { o.SetFinalizers([]string{"mine/held"}) }), "metadata.finalizers",
			},
		} {
			if err := forgery.try(asks); err != nil {
				t.Error(err)
			}
		}
	}
}

// attackByExtension has an extension of the seed create what only gardenlet does, and mark what it may change.
func attackByExtension(t *testing.T, who tenant) {
	for _, forgery := range []forgery{
		{"a Secret of the shoot", secretOf(who.namespace, "shoot.monitoring", "", nil), "does not belong"},
		{
			"a token of its account", secretOf("seed-"+who.seed, "mine", corev1.SecretTypeServiceAccountToken, nil),
			"cannot create",
		},
		{
			"an account", &corev1.ServiceAccount{
				ObjectMeta: metav1.ObjectMeta{Namespace: "seed-" + who.seed, Name: "more"},
			}, "cannot create",
		},
	} {
		err := who.extension.Create(context.Background(), forgery.object, client.DryRunAll)
		if !apierrors.IsForbidden(err) {
			t.Errorf("%s: %v, want it forbidden", forgery.what, err)
		}
	}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "seed-" + who.seed, Name: "extension"}}
	if err := who.extension.SubResource("token").Create(context.Background(), account,
		&authenticationv1.TokenRequest{}); !apierrors.IsForbidden(err) {
		t.Errorf("an extension gets itself tokens: %v", err)
	}
	state := &gardencorev1beta1.ShootState{ObjectMeta: metav1.ObjectMeta{Namespace: who.namespace, Name: "shoot"}}
	if err := who.extension.Patch(context.Background(), state,
		merge(`{"metadata":{"finalizers":["mine/held"]}}`)); !apierrors.IsForbidden(err) {
		t.Errorf("an extension holds a state: %v", err)
	}
}

// attackByToken uses service accounts elsewhere.
func attackByToken(t *testing.T, who tenant) {
	create(t, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: who.namespace, Name: "robot"}},
		&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: "attack-robot"}})
	for _, namespace := range []string{who.namespace, "garden", "kube-system"} {
		account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "robot"}}
		if namespace == "garden" {
			account.Name = "attack-robot"
		}
		if err := who.gardenlet.SubResource("token").Create(context.Background(), account,
			&authenticationv1.TokenRequest{}); !apierrors.IsForbidden(err) {
			t.Errorf("a token of %s/%s: %v, want it forbidden", namespace, account.Name, err)
		}
	}
}
