package etcd

import (
	"crypto/x509"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/pflag"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	certutil "k8s.io/client-go/util/cert"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-garden/trellis/pkg/component"
	"github.com/trellis-garden/trellis/pkg/etcd"
	"github.com/trellis-garden/trellis/pkg/secrets"
)

const (
	node = gardencorev1beta1.FailureToleranceTypeNode
	zone = gardencorev1beta1.FailureToleranceTypeZone
)

// outlasts is the availability of a control plane that outlasts a failure.
func outlasts(failure gardencorev1beta1.FailureToleranceType) component.Availability {
	return component.Availability{Tolerance: failure}
}

func newManager(t *testing.T, c client.Client, options secrets.Options, generate ...secrets.Option) secrets.Manager {
	t.Helper()
	manager, err := secrets.New(t.Context(), c, namespace, options)
	if err == nil {
		err = component.GenerateCertificateAuthorities(t.Context(), manager,
			[]string{component.CAETCD, component.CAETCDPeer}, generate...)
	}
	if err != nil {
		t.Fatal(err)
	}
	return manager
}

func TestMembersFollowAvailability(t *testing.T) {
	for _, role := range []Role{Main, Events} {
		for failure, want := range map[gardencorev1beta1.FailureToleranceType]int32{"": 1, node: 3, zone: 3} {
			if got := Decide(role)(component.Facts{Availability: outlasts(failure)}).Replicas; got != want {
				t.Errorf("%s that outlasts %q has %d members, want %d", role, failure, got, want)
			}
		}
	}
}

// A single member is one that others can join: it differs from one of several in what they replace it for afterwards.
func TestASingleMemberIsAsOneOfSeveral(t *testing.T) {
	for _, role := range []Role{Main, Events} {
		templateOf := func(availability component.Availability) corev1.PodTemplateSpec {
			values := Decide(role)(component.Facts{BackupPrefix: "p", Availability: availability})
			return statefulSet(namespace, values, secretNames{"ca", "server", "peer-ca", "peer", ""}).Spec.Template
		}
		single, several := templateOf(component.Availability{}), templateOf(outlasts(zone))
		container := &single.Spec.Containers[0]
		isFlag := func(argument string) bool { return argument == singleFlag }
		if !slices.ContainsFunc(container.Args, isFlag) || len(several.Spec.TopologySpreadConstraints) == 0 {
			t.Errorf("%s: it is not told apart by %q and %+v", role, container.Args,
				several.Spec.TopologySpreadConstraints)
		}
		container.Args, several.Spec.TopologySpreadConstraints = slices.DeleteFunc(container.Args, isFlag), nil
		if !apiequality.Semantic.DeepEqual(single, several) {
			t.Errorf("%s: %+v became %+v", role, single, several)
		}
	}
}

// It may be ended whenever, as nobody stands in for it meanwhile.
func TestASingleMemberHasNoDisruptionBudget(t *testing.T) {
	for availability, want := range map[component.Availability]bool{{}: false, outlasts(node): true} {
		isBudget := func(object client.Object) bool { _, is := object.(*policyv1.PodDisruptionBudget); return is }
		all := objects(namespace, Decide(Main)(component.Facts{Availability: availability}), secretNames{})
		if got := slices.ContainsFunc(all, isBudget); got != want {
			t.Errorf("with %+v there is a PodDisruptionBudget: %v", availability, got)
		}
	}
}

// The API server refuses to change anything of a StatefulSet but what is blanked here.
func TestGrowthChangesNothingImmutable(t *testing.T) {
	fixed := func(availability component.Availability) appsv1.StatefulSetSpec {
		values := Decide(Main)(component.Facts{Availability: availability})
		spec := statefulSet(namespace, values, secretNames{}).Spec
		spec.Replicas, spec.Template = nil, corev1.PodTemplateSpec{}
		spec.UpdateStrategy = appsv1.StatefulSetUpdateStrategy{}
		return spec
	}
	single, several := fixed(component.Availability{}), fixed(outlasts(zone))
	if !apiequality.Semantic.DeepEqual(single, several) {
		t.Errorf("%+v became %+v", single, several)
	}
	if single.PodManagementPolicy != appsv1.ParallelPodManagement || single.ServiceName != "etcd-main-peer" {
		t.Errorf("members cannot be started together, or not be found: %+v", single)
	}
}

// argumentsOf are those of a member, as kubelet gives them to it.
func argumentsOf(pod corev1.PodSpec, name string) []string {
	arguments := slices.Clone(pod.Containers[0].Args)
	for i := range arguments {
		arguments[i] = strings.ReplaceAll(arguments[i], ownName, name)
	}
	return arguments
}

func TestTheStewardAcceptsTheArguments(t *testing.T) {
	for _, test := range []struct {
		role         Role
		availability component.Availability
	}{
		{Main, component.Availability{}}, {Main, outlasts(node)}, {Events, component.Availability{}},
		{Events, outlasts(zone)},
	} {
		role, values := test.role, Decide(test.role)(component.Facts{Availability: test.availability})
		pod := podSpec(namespace, values, secretNames{})
		var urls []string
		for _, name := range PodNames(role, values.Replicas) {
			options := etcd.DefaultOptions()
			flags := pflag.NewFlagSet("etcd-steward", pflag.ContinueOnError)
			options.AddFlags(flags)
			if err := flags.Parse(argumentsOf(pod, name)); err != nil {
				t.Fatal(err)
			}
			if err := options.Validate(); err != nil || options.Name != name ||
				options.SingleMember == test.availability.IsHigh() {
				t.Errorf("%s is called %q, and single: %v, %v", name, options.Name, options.SingleMember, err)
			}
			urls = append(urls, options.AdvertiseClientURL)
		}
		if slices.Sort(urls); len(slices.Compact(urls)) != int(values.Replicas) {
			t.Errorf("members of %s advertise %q", role, urls)
		}
	}
}

// TestAttackClientsAreNoPeers plays who has a certificate of etcd's clients, of the members of the other etcd's server,
// or of the members of another control plane: as a peer, it could change all data. Single members have peers, too.
func TestAttackClientsAreNoPeers(t *testing.T) {
	for name, availability := range map[string]component.Availability{"single": {}, "several": outlasts(node)} {
		t.Run(name, func(t *testing.T) { attackPeers(t, availability) })
	}
}

func attackPeers(t *testing.T, availability component.Availability) {
	t.Helper()
	c := fake.NewClientBuilder().Build()
	manager := newManager(t, c, secrets.Options{})
	stolen := peerOfAnother(t, c)
	values := Decide(Main)(component.Facts{Availability: availability})
	if err := New(c, namespace, manager, values).Deploy(t.Context()); err != nil {
		t.Fatal(err)
	}
	set := &appsv1.StatefulSet{}
	if err := c.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: "etcd-main"}, set); err != nil {
		t.Fatal(err)
	}
	mounted := mountedSecrets(set)
	attacker, err := manager.Generate(t.Context(), ClientCertificate())
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		certificate, authority string
		usage                  x509.ExtKeyUsage
		trusted                bool
	}{
		"a client as a peer":        {attacker.Name, mounted.peerCA, x509.ExtKeyUsageClientAuth, false},
		"a server as a peer":        {mounted.server, mounted.peerCA, x509.ExtKeyUsageClientAuth, false},
		"a peer of another":         {stolen, mounted.peerCA, x509.ExtKeyUsageClientAuth, false},
		"another that is asked":     {stolen, mounted.peerCA, x509.ExtKeyUsageServerAuth, false},
		"a peer as a client":        {mounted.peer, mounted.ca, x509.ExtKeyUsageClientAuth, false},
		"a peer that connects":      {mounted.peer, mounted.peerCA, x509.ExtKeyUsageClientAuth, true},
		"a peer that is asked":      {mounted.peer, mounted.peerCA, x509.ExtKeyUsageServerAuth, true},
		"a member that is a client": {mounted.server, mounted.ca, x509.ExtKeyUsageClientAuth, true},
		"a client":                  {attacker.Name, mounted.ca, x509.ExtKeyUsageClientAuth, true},
	} {
		if err := verified(t, c, test.certificate, test.authority, test.usage); (err == nil) != test.trusted {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, wanted := range []string{
		"--peer-trusted-ca-file=/etc/etcd/peer-pki/ca.crt", "--trusted-ca-file=/etc/etcd/pki/ca.crt",
	} {
		if !slices.Contains(set.Spec.Template.Spec.Containers[0].Args, wanted) {
			t.Errorf("%s is not among %q", wanted, set.Spec.Template.Spec.Containers[0].Args)
		}
	}
	if mounted.peerCA == mounted.ca || !strings.HasPrefix(mounted.peerCA, "ca-etcd-peer-bundle-") {
		t.Errorf("mounted are %+v", mounted)
	}
}

// peerOfAnother returns the Secret with the certificate of a member of another control plane, for the same names.
func peerOfAnother(t *testing.T, into client.Client) string {
	t.Helper()
	other := newManager(t, fake.NewClientBuilder().Build(), secrets.Options{})
	peer, err := other.Generate(t.Context(), peerCertificate(namespace, Main))
	if err != nil {
		t.Fatal(err)
	}
	stolen := &corev1.Secret{Data: peer.Data}
	stolen.Namespace, stolen.Name = namespace, "peer-of-another"
	if err := into.Create(t.Context(), stolen); err != nil {
		t.Fatal(err)
	}
	return stolen.Name
}

// verified says why the certificate in a Secret is not trusted by who trusts the bundle in another.
func verified(t *testing.T, c client.Client, certificate, authority string, usage x509.ExtKeyUsage) error {
	t.Helper()
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(dataOf(t, c, authority, secrets.DataKeyCertificateBundle))
	chain, err := certutil.ParseCertsPEM(dataOf(t, c, certificate, secrets.DataKeyCertificate))
	if err != nil {
		t.Fatal(err)
	}
	_, err = chain[0].Verify(x509.VerifyOptions{Roots: roots, KeyUsages: []x509.ExtKeyUsage{usage}})
	return err
}

func dataOf(t *testing.T, c client.Client, name, key string) []byte {
	t.Helper()
	secret := &corev1.Secret{}
	if err := c.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, secret); err != nil {
		t.Fatal(err)
	}
	return secret.Data[key]
}

// Members are found at names that their certificates have, as peers and as servers of clients.
func TestCertificatesHaveTheNamesOfMembers(t *testing.T) {
	c := fake.NewClientBuilder().Build()
	manager := newManager(t, c, secrets.Options{})
	for _, config := range []secrets.CertificateConfig{
		peerCertificate(namespace, Main), serverCertificate(namespace, Main),
	} {
		secret, err := manager.Generate(t.Context(), config)
		if err != nil {
			t.Fatal(err)
		}
		chain, err := certutil.ParseCertsPEM(secret.Data[secrets.DataKeyCertificate])
		if err != nil {
			t.Fatal(err)
		}
		for _, pod := range PodNames(Main, memberCount) {
			if err := chain[0].VerifyHostname(hostOf(namespace, Main, pod)); err != nil {
				t.Errorf("%s: %v", config.Name, err)
			}
		}
		if err := chain[0].VerifyHostname(hostOf(namespace, Events, "etcd-events-0")); err == nil {
			t.Errorf("%s is good for another etcd, too", config.Name)
		}
	}
}

// Who deletes a control plane knows only its name, and not how many members it has had.
func TestDestroyLeavesNothing(t *testing.T) {
	for name, availability := range map[string]component.Availability{"single": {}, "several": outlasts(node)} {
		t.Run(name, func(t *testing.T) {
			c := fake.NewClientBuilder().Build()
			values := Decide(Main)(component.Facts{Availability: availability})
			if err := New(c, namespace, newManager(t, c, secrets.Options{}), values).Deploy(t.Context()); err != nil {
				t.Fatal(err)
			}
			for _, pod := range PodNames(Main, memberCount) {
				claim := &corev1.PersistentVolumeClaim{}
				claim.Namespace, claim.Name = namespace, "main-etcd-"+pod
				if err := c.Create(t.Context(), claim); err != nil {
					t.Fatal(err)
				}
			}
			deleted := New(c, namespace, nil, Values{Role: Main})
			if err := deleted.Destroy(t.Context()); err != nil {
				t.Fatal(err)
			}
			if err := deleted.WaitCleanup(t.Context()); err != nil {
				t.Fatal(err)
			}
			for _, list := range []client.ObjectList{
				&appsv1.StatefulSetList{}, &corev1.ServiceList{}, &corev1.PersistentVolumeClaimList{},
				&policyv1.PodDisruptionBudgetList{},
			} {
				if err := c.List(t.Context(), list); err != nil {
					t.Fatal(err)
				}
				if left := meta.LenList(list); left > 0 {
					t.Errorf("left is %+v", list)
				}
			}
		})
	}
}
