package seedauthorizer

import (
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	seedmanagementv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/seedmanagement/v1alpha1"
)

var (
	gardenlet = Identity{Seed: "one"}
	extension = Identity{Seed: "one", Extension: true}
	allVerbs  = []string{"get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"}
)

// attributes of a request: "verb group/resource/subresource namespace/name", where an empty group is "core".
func attributes(t *testing.T, request string, selector ...string) authorizer.AttributesRecord {
	t.Helper()
	parts := strings.Fields(request)
	resource := strings.Split(parts[1], "/")
	record := authorizer.AttributesRecord{
		ResourceRequest: true, Verb: parts[0], APIGroup: resource[0], Resource: resource[1],
	}
	switch resource[0] {
	case "core":
		record.APIGroup = ""
	case "garden":
		record.APIGroup = gardencorev1beta1.GroupName
	case "security":
		record.APIGroup = "security.gardener.cloud"
	}
	if len(resource) > 2 {
		record.Subresource = resource[2]
	}
	if len(parts) > 2 {
		record.Namespace, record.Name, _ = strings.Cut(parts[2], "/")
	}
	if len(selector) > 0 {
		parsed, err := fields.ParseSelector(selector[0])
		if err != nil {
			t.Fatal(err)
		}
		record.FieldSelectorRequirements = parsed.Requirements()
	}
	return record
}

// TestMatrix holds, for every resource, what gardenlet (first) and extensions (second) may do with an object of their
// seed, and that they may do nothing with an object of another seed but what the third list says: what all seeds may.
func TestMatrix(t *testing.T) {
	g := state("one")
	for _, test := range []struct {
		own, foreign                 string
		gardenlet, extension, others string
	}{
		{
			"garden/shoots garden-one/s", "garden/shoots garden-two/s", "get list watch update patch", "get list watch",
			"",
		},
		{"garden/shoots/status garden-one/s", "garden/shoots/status garden-two/s", "get update patch", "", ""},
		{"garden/shoots/binding garden-one/s", "garden/shoots/binding garden-two/s", "", "", ""},
		{
			"garden/shoots/adminkubeconfig garden-one/s", "garden/shoots/adminkubeconfig garden-two/s", "create",
			"create", "",
		},
		{
			"garden/shoots/viewerkubeconfig garden-one/s", "garden/shoots/viewerkubeconfig garden-two/s", "create",
			"create", "",
		},
		// A member of the namespace's fleet, on another seed.
		{"garden/shoots garden-one/member", "garden/shoots garden-two/member", "get list watch", "get list watch", ""},
		{"garden/shoots/status garden-one/member", "garden/shoots/status garden-two/member", "", "", ""},
		{
			"garden/shoots/adminkubeconfig garden-one/member", "garden/shoots/adminkubeconfig garden-two/member",
			"create", "create", "",
		},
		{"garden/seeds /one", "garden/seeds /two", "get list watch create update patch", "get list watch", ""},
		{"garden/seeds/status /one", "garden/seeds/status /two", "get update patch", "", ""},
		{
			"garden/backupbuckets /bucket-one", "garden/backupbuckets /bucket-two", "get list watch update patch",
			"get list watch", "",
		},
		{
			"garden/backupbuckets/status /bucket-one", "garden/backupbuckets/status /bucket-two", "get update patch",
			"", "",
		},
		{
			"garden/backupentries garden-one/entry-one", "garden/backupentries garden-two/entry-two",
			"get list watch create update patch delete", "get list watch", "",
		},
		{
			"garden/backupentries/status garden-one/entry-one", "garden/backupentries/status garden-two/entry-two",
			"get update patch", "", "",
		},
		{
			"garden/controllerinstallations /installation-one", "garden/controllerinstallations /installation-two",
			"get list watch update patch", "get list watch", "",
		},
		{
			"garden/controllerinstallations/status /installation-one",
			"garden/controllerinstallations/status /installation-two", "get update patch", "", "",
		},
		{
			"garden/controllerregistrations /registration-one", "garden/controllerregistrations /registration-two",
			"get list watch", "get list watch", "get list watch",
		},
		{
			"garden/controllerdeployments /deployment-one", "garden/controllerdeployments /deployment-two",
			"get list watch", "", "",
		},
		{
			"garden/cloudprofiles /parent-one", "garden/cloudprofiles /parent-two", "get list watch", "get list watch",
			"",
		},
		{
			"garden/namespacedcloudprofiles garden-one/profile-s",
			"garden/namespacedcloudprofiles garden-two/profile-s", "get list watch", "get list watch", "",
		},
		{"garden/exposureclasses /exposure-s", "garden/exposureclasses /other", "get list watch", "get list watch", ""},
		{"garden/projects /project-one", "garden/projects /project-two", "get list watch", "get list watch", ""},
		{"garden/quotas garden/quota-one", "garden/quotas garden/quota-two", "get list watch", "", ""},
		{
			"garden/secretbindings garden-one/oldbinding-s", "garden/secretbindings garden-two/oldbinding-s",
			"get list watch", "", "",
		},
		{
			"security/credentialsbindings garden-one/binding-s", "security/credentialsbindings garden-two/binding-s",
			"get list watch", "", "",
		},
		{
			"garden/shootstates garden-one/s", "garden/shootstates garden-two/s",
			"get list watch create update patch delete", "", "",
		},
		{
			"garden/internalsecrets garden-one/s.ca-client", "garden/internalsecrets garden-two/s.ca-client",
			"get list watch create update patch delete", "", "",
		},
		{
			"garden/internalsecrets garden-one/s.ca-client", "garden/internalsecrets garden-one/other",
			"get list watch create update patch delete", "", "",
		},
		{
			"garden/internalsecrets garden-one/infra", "garden/internalsecrets garden-two/infra", "get list watch", "",
			"",
		},
		{
			"security/workloadidentities garden-one/infra", "security/workloadidentities garden-two/infra",
			"get list watch", "get list watch", "",
		},
		{
			"security/workloadidentities/token garden-one/infra", "security/workloadidentities/token garden-two/infra",
			"create", "", "",
		},
		{
			"security/workloadidentities/token garden-one/identity-s",
			"security/workloadidentities/token garden-one/unused", "create", "", "",
		},
		{"core/namespaces garden-one/garden-one", "core/namespaces garden-two/garden-two", "get list watch", "get", ""},
		{"core/namespaces seed-one/seed-one", "core/namespaces seed-two/seed-two", "get list watch create", "get", ""},
		{"core/secrets garden-one/infra", "core/secrets garden-two/infra", "get list watch", "", ""},
		{"core/secrets garden/dns-one", "core/secrets garden/dns-two", "get list watch", "", ""},
		{
			"core/secrets garden/generated-bucket-bucket-one", "core/secrets garden/generated-bucket-bucket-two",
			"get list watch create update patch delete", "", "",
		},
		{
			"core/secrets garden/generated-bucket-bucket-one", "core/secrets garden/stolen-one",
			"get list watch create update patch delete", "", "",
		},
		// Of a bucket that the seed has an entry in.
		{
			"core/secrets garden/generated-bucket-bucket-one",
			"core/secrets garden/generated-bucket-foreign-bucket-one", "get list watch create update patch delete", "",
			"",
		},
		{
			"core/secrets garden-one/s.ssh-keypair.old", "core/secrets garden-one/private",
			"get list watch create update patch delete", "", "",
		},
		{
			"core/secrets seed-one/token", "core/secrets seed-two/token", "get list watch create update patch delete",
			"get list watch", "",
		},
		{
			"core/configmaps garden-one/audit-s", "core/configmaps garden-two/audit-s", "get list watch",
			"get list watch", "",
		},
		{
			"core/configmaps garden-one/s.ca-cluster", "core/configmaps garden-two/s.ca-cluster",
			"get list watch create update patch delete", "get list watch", "",
		},
		{
			"core/configmaps garden-one/s.operation", "core/configmaps garden-two/s.operation",
			"get list watch create update patch delete", "", "",
		},
		// A member of the namespace's fleet, on another seed: to read a shoot gives no right to tell of it.
		{
			"core/configmaps garden-one/s.operation", "core/configmaps garden-one/member.operation",
			"get list watch create update patch delete", "", "",
		},
		{
			"core/serviceaccounts seed-one/extension", "core/serviceaccounts seed-two/extension",
			"get list watch create update patch delete", "get", "",
		},
		{
			"core/serviceaccounts/token seed-one/extension", "core/serviceaccounts/token garden-one/robot", "create",
			"", "",
		},
		{"core/events garden-one/e", "core/events garden-two/e", "create update patch", "create update patch", ""},
		{
			"events.k8s.io/events seed-one/e", "events.k8s.io/events seed-two/e", "create update patch",
			"create update patch", "",
		},
		{
			"coordination.k8s.io/leases gardener-system-seed-lease/one",
			"coordination.k8s.io/leases gardener-system-seed-lease/two", "get list watch create update patch delete",
			"", "",
		},
		{
			"coordination.k8s.io/leases seed-one/leader", "coordination.k8s.io/leases seed-two/leader",
			"get list watch create update patch delete", "get list watch create update patch delete", "",
		},
		{
			"certificates.k8s.io/certificatesigningrequests /csr-one",
			"certificates.k8s.io/certificatesigningrequests /csr-two", "get list watch create", "", "",
		},
		{
			"operations.gardener.cloud/bastions garden-one/bastion",
			"operations.gardener.cloud/bastions garden-two/bastion", "get list watch update patch", "get list watch",
			"",
		},
		{
			"operations.gardener.cloud/bastions/status garden-one/bastion",
			"operations.gardener.cloud/bastions/status garden-two/bastion", "get update patch", "", "",
		},
		{
			"seedmanagement.gardener.cloud/managedseeds garden-one/managed-one",
			"seedmanagement.gardener.cloud/managedseeds garden-two/managed-two", "get list watch update patch", "", "",
		},
		{
			"seedmanagement.gardener.cloud/managedseeds/status garden-one/managed-one",
			"seedmanagement.gardener.cloud/managedseeds/status garden-two/managed-two", "get update patch", "", "",
		},
		// The Seed that a shoot has become.
		{"garden/seeds /managed-one", "garden/seeds /managed-two", "get list watch", "get list watch", ""},
		{"garden/seeds/status /managed-one", "garden/seeds/status /managed-two", "", "", ""},
		{"garden/seeds /child-one", "garden/seeds /child-two", "get list watch delete", "get list watch", ""},
		{
			"core/secrets kube-system/" + seedmanagementv1alpha1.BootstrapTokenSecretName("child-one"),
			"core/secrets kube-system/" + seedmanagementv1alpha1.BootstrapTokenSecretName("child-two"),
			"get create delete", "", "",
		},
		{
			"core/serviceaccounts garden/gardenlet-bootstrap-child-one",
			"core/serviceaccounts garden/gardenlet-bootstrap-child-two", "get create delete", "", "",
		},
		{
			"core/serviceaccounts/token garden/gardenlet-bootstrap-child-one",
			"core/serviceaccounts/token garden/gardenlet-bootstrap-child-two", "create", "", "",
		},
		{"core/secrets garden/pull-one", "core/secrets garden/pull-two", "get list watch", "", ""},
		{
			"seedmanagement.gardener.cloud/gardenlets garden/one",
			"seedmanagement.gardener.cloud/gardenlets garden/two", "get list watch", "", "",
		},
		{
			"seedmanagement.gardener.cloud/gardenlets/status garden/one",
			"seedmanagement.gardener.cloud/gardenlets/status garden/two", "get update patch", "", "",
		},
		{
			"rbac.authorization.k8s.io/clusterroles /x", "rbac.authorization.k8s.io/rolebindings garden-one/x", "", "",
			"",
		},
		{"core/pods garden-one/x", "apiregistration.k8s.io/apiservices /x", "", "", ""},
	} {
		for _, verb := range allVerbs {
			for _, who := range []struct {
				Identity
				own string
			}{{gardenlet, test.gardenlet}, {extension, test.extension}} {
				check(t, g, who.Identity, verb+" "+test.own, slices.Contains(strings.Fields(who.own), verb))
				check(t, g, who.Identity, verb+" "+test.foreign, slices.Contains(strings.Fields(test.others), verb))
			}
		}
	}
}

func check(t *testing.T, g *Graph, who Identity, request string, want bool, selector ...string) {
	t.Helper()
	decision, reason := Authorize(g, who, attributes(t, request, selector...))
	if got := decision == authorizer.DecisionAllow; got != want {
		t.Errorf("%s: %s %v: allowed = %v, want %v (%s)", who, request, selector, got, want, reason)
	}
	if !want && reason == "" {
		t.Errorf("%s: %s: refused without a reason", who, request)
	}
}

func TestCollections(t *testing.T) {
	g := state("one")
	for _, test := range []struct {
		request, selector string
		want              bool
	}{
		{"list garden/shoots", "", false},
		{"list garden/shoots", "spec.seedName=one", true},
		{"watch garden/shoots", "status.seedName=one", true},
		{"list garden/shoots", "spec.seedName=two", false},
		{"list garden/shoots", "spec.seedName!=one", false},
		{"list garden/shoots", "spec.cloudProfile.name=one", false},
		{"list garden/shoots", "spec.cloudProfile.name=x,spec.seedName=one", true},
		{"list garden/shoots garden-two/", "spec.seedName=one", true},
		{"list garden/shoots garden-one/", "", true}, // runs a fleet there
		{"list garden/shoots garden-two/", "", false},
		{"deletecollection garden/shoots", "spec.seedName=one", false},
		{"watch garden/controllerinstallations", "spec.seedRef.name=one", true},
		{"watch garden/controllerinstallations", "", false},
		{"list garden/backupbuckets", "spec.seedName=one", true},
		{"list garden/backupbuckets", "", false},
		{"list garden/backupentries", "spec.seedName=one", true},
		{"list operations.gardener.cloud/bastions", "spec.seedName=one", true},
		{"list operations.gardener.cloud/bastions", "spec.seedName=two", false},
		{"list garden/seeds", "", false},
		{"list garden/controllerregistrations", "", true},
		{"list garden/controllerdeployments", "", false},
		{"list core/secrets", "", false},
		{"list core/secrets garden-one/", "", false},
		{"list core/secrets seed-one/", "", true},
		{"list garden/internalsecrets garden-one/", "", false},
		{"list seedmanagement.gardener.cloud/managedseeds garden/", "", false},
		{"list seedmanagement.gardener.cloud/managedseeds", "", false},
		{"list seedmanagement.gardener.cloud/managedseeds garden/", "spec.shoot.name=base-one", true},
		{"list seedmanagement.gardener.cloud/managedseeds garden/", "spec.shoot.name=base-two", false},
		{"list seedmanagement.gardener.cloud/managedseeds garden/", "spec.shoot.name!=base-one", false},
		{"create garden/shoots garden-one/", "", false},
		{"create garden/seeds", "", true},
		{"create garden/internalsecrets garden-one/", "", true},
		{"create garden/internalsecrets garden-two/", "", false},
		{"create garden/backupentries garden-one/", "", true},
		{"create garden/backupentries garden-two/", "", false},
		{"create garden/backupbuckets", "", false},
		{"create core/secrets garden-one/", "", true},
		{"create core/secrets garden-two/", "", false},
		// bootstrap tokens of managed seeds: admission asks again with the name
		{"create core/secrets kube-system/", "", true},
		{"list core/secrets kube-system/", "", false},
		{"create core/secrets garden/", "", true}, // access to buckets: as above
		{"list core/secrets garden/", "", false},
		{"create core/serviceaccounts garden/", "", true}, // as above
		{"create core/secrets default/", "", false},
		{"create core/configmaps garden-two/", "", false},
		{"create core/serviceaccounts garden-one/", "", false},
		{"create coordination.k8s.io/leases gardener-system-seed-lease/", "", true},
		{"create coordination.k8s.io/leases kube-system/", "", false},
		{"create certificates.k8s.io/certificatesigningrequests", "", true},
	} {
		if test.selector == "" {
			check(t, g, gardenlet, test.request, test.want)
		} else {
			check(t, g, gardenlet, test.request, test.want, test.selector)
		}
	}
}

func TestIdentity(t *testing.T) {
	for _, test := range []struct {
		name   string
		groups []string
		want   Identity
		is     bool
	}{
		{"gardener.cloud:system:seed:one", []string{"gardener.cloud:system:seeds"}, Identity{Seed: "one"}, true},
		{"gardener.cloud:system:seed:one", nil, Identity{}, false},
		{"gardener.cloud:system:seed:", []string{"gardener.cloud:system:seeds"}, Identity{}, false},
		{"jane", []string{"gardener.cloud:system:seeds"}, Identity{}, false},
		{"system:serviceaccount:seed-one:extension-x", nil, Identity{Seed: "one", Extension: true}, true},
		{"system:serviceaccount:seed-:x", nil, Identity{}, false},
		{"system:serviceaccount:garden-one:x", nil, Identity{}, false},
		{"system:serviceaccount:seed-one", nil, Identity{}, false},
		{"gardener.cloud:system:garden-scheduler", nil, Identity{}, false},
	} {
		got, is := IdentityOf(&user.DefaultInfo{Name: test.name, Groups: test.groups})
		if is != test.is || (is && got != test.want) {
			t.Errorf("IdentityOf(%s, %v) = %v, %v; want %v, %v", test.name, test.groups, got, is, test.want, test.is)
		}
	}
	if _, is := IdentityOf(nil); is {
		t.Error("nobody is no seed")
	}
}

func TestNoOpinionBeforeTheGraphIsComplete(t *testing.T) {
	synced := false
	a := &Authorizer{Graph: state("one"), Synced: func() bool { return synced }}
	record := attributes(t, "get garden/shoots garden-one/s")
	record.User = &user.DefaultInfo{
		Name: "gardener.cloud:system:seed:one", Groups: []string{"gardener.cloud:system:seeds"},
	}
	if decision, reason, err := a.Authorize(t.Context(), record); decision != authorizer.DecisionNoOpinion ||
		reason == "" || err != nil {
		t.Errorf("before: %v, %q, %v", decision, reason, err)
	}
	synced = true
	if decision, _, err := a.Authorize(t.Context(), record); decision != authorizer.DecisionAllow || err != nil {
		t.Errorf("after: %v, %v", decision, err)
	}
	record.User = &user.DefaultInfo{Name: "jane"}
	if decision, reason, _ := a.Authorize(t.Context(), record); decision != authorizer.DecisionNoOpinion ||
		reason != "" {
		t.Errorf("about others: %v, %q", decision, reason)
	}
}
