package federation

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/trellis-garden/trellis/pkg/apis/fleetscheme"
	workv1alpha2 "github.com/trellis-garden/trellis/pkg/apis/work/v1alpha2"
)

// asTenant gives alice the rights of an application team: its own objects and policies in one namespace of the fleet,
// nothing elsewhere.
func (w *world) asTenant(t *testing.T, namespace string) client.Client {
	t.Helper()
	meta := metav1.ObjectMeta{Namespace: namespace, Name: "team"}
	role := &rbacv1.Role{ObjectMeta: meta, Rules: []rbacv1.PolicyRule{
		{
			APIGroups: []string{"", "apps"}, Resources: []string{"configmaps", "secrets", "deployments"},
			Verbs: []string{"*"},
		},
		{
			APIGroups: []string{"policy.karmada.io"}, Resources: []string{"overridepolicies", "propagationpolicies"},
			Verbs: []string{"*"},
		},
		{APIGroups: []string{"work.karmada.io"}, Resources: []string{"resourcebindings"}, Verbs: []string{"*"}},
	}}
	binding := &rbacv1.RoleBinding{
		ObjectMeta: meta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "team"},
		Subjects: []rbacv1.Subject{rbacUser("alice")},
	}
	if err := errors.Join(w.fleet.Create(ctx, role), w.fleet.Create(ctx, binding)); err != nil {
		t.Fatal(err)
	}
	scheme := fleetscheme.Scheme()
	alice, err := w.newClient(w.asAlice(), scheme)
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "alice has her rights", func() error {
		return alice.List(ctx, &corev1.ConfigMapList{}, client.InNamespace(namespace))
	})
	return alice
}

// tenantPolicy propagates the team's ConfigMaps and Secrets to member1.
const tenantPolicy = `
apiVersion: policy.karmada.io/v1alpha1
kind: PropagationPolicy
metadata: {name: team}
spec:
  propagateDeps: true
  resourceSelectors: [{apiVersion: v1, kind: ConfigMap}, {apiVersion: v1, kind: Secret, name: stamp}]
  placement: {clusterAffinity: {clusterNames: [member1]}}
`

const tenantOverride = `
apiVersion: policy.karmada.io/v1alpha1
kind: OverridePolicy
metadata: {name: %s}
spec:
  resourceSelectors: [%s]
  overrideRules: [{overriders: {%s}}]
`

const (
	onlyPrize = `{apiVersion: v1, kind: ConfigMap, name: prize}`
	// crown makes alice cluster-admin of every member; %s is its name.
	crown = `{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding, metadata: {name: %s},
		roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}, subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: alice}]}`
)

// TestAttackOverrideIsRefused: no override policy can be written that would make an object another one.
func TestAttackOverrideIsRefused(t *testing.T) {
	w := newWorld(t)
	namespace := w.newNamespace(t)
	alice := w.asTenant(t, namespace)
	plain := func(path, operator, value string) string {
		if value != "" {
			value = ", value: " + value
		}
		return fmt.Sprintf("plaintext: [{path: %q, operator: %s%s}]", path, operator, value)
	}
	const what = "metadata.labels or metadata.annotations"
	tests := map[string]struct{ selectors, overriders, want string }{
		"whole object": {
			onlyPrize, plain("", "replace", fmt.Sprintf(crown, namespace)), "plaintext[0].path",
		},
		"kind": {onlyPrize, plain("/kind", "replace", "Secret"), "plaintext[0].path"},
		"apiVersion": {
			onlyPrize, plain("/apiVersion", "replace", "rbac.authorization.k8s.io/v1"), "plaintext[0].path",
		},
		"metadata": {
			onlyPrize, plain("/metadata", "replace", `{name: x, namespace: kube-system}`), what,
		},
		"namespace": {onlyPrize, plain("/metadata/namespace", "replace", "kube-system"), what},
		"name":      {onlyPrize, plain("/metadata/name", "replace", "x"), what},
		"owners": {
			onlyPrize, plain("/metadata/ownerReferences", "add",
				`[{apiVersion: v1, kind: Namespace, name: x, uid: x}]`), what,
		},
		"finalizers":    {onlyPrize, plain("/metadata/finalizers", "add", `[x.y/z]`), what},
		"fleet's label": {onlyPrize, plain("/metadata/labels/karmada.io~1managed", "add", "x"), what},
		"fleet's annotation": {
			onlyPrize, plain("/metadata/annotations/work.karmada.io~1namespace", "add", "karmada-es-member2"), what,
		},
		"fleet's label, removed": {onlyPrize, plain("/metadata/labels/karmada.io~1managed", "remove", ""), what},
		"labels, as a whole": {
			onlyPrize, plain("/metadata/labels", "add", `{a: b, work.karmada.io/permanent-id: x}`), "plaintext: value",
		},
		"labels overrider": {
			onlyPrize, `labelsOverrider: [{operator: add, value: {resourcetemplate.karmada.io/x: "y"}}]`,
			"labelsOverrider",
		},
		"annotations overrider": {
			onlyPrize,
			`annotationsOverrider: [{operator: remove, value: {federation.trellis.garden/content-hash: ""}}]`,
			"annotationsOverrider",
		},
		"image of a namespace": {
			onlyPrize,
			`imageOverrider: [{component: Repository, operator: replace, value: kube-system, predicate: {path: /metadata/namespace}}]`, "imageOverrider[0].predicate.path",
		},
		"document in a name": {
			onlyPrize,
			`fieldOverrider: [{fieldPath: /metadata/name, yaml: [{subPath: "", operator: replace, value: x}]}]`,
			"fieldOverrider[0].fieldPath",
		},
		"RoleBindings": {
			`{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding}`, plain("/subjects", "add", "[]"),
			"spec.resourceSelectors",
		},
		"ResourceQuotas": {
			`{apiVersion: v1, kind: ResourceQuota}`, plain("/spec/hard", "add", "{}"), "spec.resourceSelectors",
		},
		"type of a Secret": {
			`{apiVersion: v1, kind: Secret}`, plain("/type", "add", "kubernetes.io/service-account-token"), "/type",
		},
		"account of a Secret": {
			`{apiVersion: v1, kind: Secret}`,
			`annotationsOverrider: [{operator: add, value: {kubernetes.io/service-account.name: default}}]`,
			"service-account.name",
		},
		"account, by its path": {
			`{apiVersion: v1, kind: Secret}`,
			plain("/metadata/annotations/kubernetes.io~1service-account.name", "add", "default"),
			"service-account.name",
		},
		"account, as a whole": {
			`{apiVersion: v1, kind: Secret}`,
			plain("/metadata/annotations", "add", "{kubernetes.io/service-account.name: default}"), "plaintext: value",
		},
		"type of all that is not": {``, plain("/type", "add", "kubernetes.io/service-account-token"), "/type"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			policy := in(namespace, parse(t, fmt.Sprintf(tenantOverride, "attack", tc.selectors, tc.overriders))[0])
			err := alice.Create(ctx, policy)
			if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want a refusal with %q", err, tc.want)
			}
			if err == nil {
				remove(t, alice, policy)
			}
		})
	}
	t.Run("older form", func(t *testing.T) {
		policy :=
			parse(t,
				fmt.Sprintf(`{apiVersion: policy.karmada.io/v1alpha1, kind: OverridePolicy, metadata: {name: older}, spec: {overriders: {%s}}}`, plain("/kind", "replace", "Secret")))
		if err := alice.Create(ctx, in(namespace, policy[0])); !apierrors.IsInvalid(err) ||
			!strings.Contains(err.Error(), "plaintext[0].path") {
			t.Errorf("got %v", err)
		}
	})
	t.Run("what is content is accepted", func(t *testing.T) {
		for i, overriders := range []string{
			plain("/data/kind", "add", "x"), plain("/metadata/annotations", "add", "{a: b}"),
			plain("/metadata/labels/a.b~1c", "remove", ""),
			`labelsOverrider: [{operator: add, value: {app: x}}], fieldOverrider: [{fieldPath: /metadata/annotations/a~1b, json: [{subPath: "", operator: replace, value: 1}]}]`,
		} {
			if err := alice.Create(ctx, in(namespace,
				parse(t, fmt.Sprintf(tenantOverride, fmt.Sprintf("good-%d", i), onlyPrize,
					overriders))[0])); err != nil {
				t.Errorf("%s: %v", overriders, err)
			}
		}
	})
}

// withoutRulesFor plays a fleet of before the rules: what is written meanwhile is stored.
func (w *world) withoutRulesFor(t *testing.T, write func() error) {
	t.Helper()
	binding := &admissionregistrationv1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "override-policies.federation.trellis.garden"},
	}
	if err := client.IgnoreNotFound(w.fleet.Delete(ctx, binding)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := w.installPolicies(); err != nil {
			t.Fatal(err)
		}
	})
	eventually(t, "the rules are not enforced", write)
}

// TestAttackOverrideChangesWhatArrives: override policies that are stored already do not make objects others either. A
// ConfigMap stays one.
func TestAttackOverrideChangesWhatArrives(t *testing.T) {
	w := newWorld(t)
	w.startFederation(t)
	namespace := w.newNamespace(t)
	alice := w.asTenant(t, namespace)
	attacks := map[string]string{
		"whole": fmt.Sprintf(`plaintext: [{path: "", operator: replace, value: %s}]`,
			fmt.Sprintf(crown, namespace)),
		"namespace": `plaintext: [{path: /metadata/namespace, operator: replace, value: kube-system}]`,
		"name":      `plaintext: [{path: /metadata/name, operator: replace, value: other}]`,
		"owned":     `plaintext: [{path: /metadata/ownerReferences, operator: add, value: [{apiVersion: v1, kind: Namespace, name: x, uid: x}]}]`,
		"marked":    `labelsOverrider: [{operator: add, value: {karmada.io/managed: "false"}}]`,
	}
	w.withoutRulesFor(t, func() error {
		for name, overriders := range attacks {
			policy := parse(t, fmt.Sprintf(tenantOverride, name, strings.Replace(onlyPrize, "prize", name, 1),
				overriders))[0]
			if err := alice.Create(ctx, in(namespace, policy)); client.IgnoreAlreadyExists(err) != nil {
				return err
			}
		}
		// Without selectors it is about whatever somebody else writes into the namespace.
		grab := parse(t, fmt.Sprintf(tenantOverride, "grab", "",
			`plaintext: [{path: /subjects, operator: add, value: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: alice}]}]`))[0]
		return client.IgnoreAlreadyExists(alice.Create(ctx, in(namespace, grab)))
	})
	apply(t, alice, namespace, parse(t, tenantPolicy)...)
	for name := range attacks {
		apply(t, alice, namespace, parse(t,
			fmt.Sprintf(`{apiVersion: v1, kind: ConfigMap, metadata: {name: %s}, data: {a: b}}`, name))...)
	}
	for name := range attacks {
		w.warned(t, namespace, "ApplyOverridePolicyFailed",
			"cluster member1: OverridePolicy "+namespace+"/"+name+": spec.overrideRules[0].overriders.",
			"would change: what an object is must stay")
	}
	if _, err := get(w.member["member1"], "rbac.authorization.k8s.io/v1", "ClusterRoleBinding", "",
		namespace); !apierrors.IsNotFound(err) {
		t.Errorf("alice is cluster-admin of member1: %v", err)
	}
	if _, err := get(w.member["member1"], "v1", "ConfigMap", "kube-system", "namespace"); !apierrors.IsNotFound(err) {
		t.Errorf("member1 has a ConfigMap in kube-system: %v", err)
	}
	apply(t, w.fleet, namespace, parse(t, `
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: operators}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: admin}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: olga}]
---
apiVersion: policy.karmada.io/v1alpha1
kind: PropagationPolicy
metadata: {name: operators}
spec:
  resourceSelectors: [{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, name: operators}]
  placement: {clusterAffinity: {clusterNames: [member1]}}
`)...)
	eventually(t, "the RoleBinding is there as it was written", func() error {
		got := &rbacv1.RoleBinding{}
		if err := w.member["member1"].Get(ctx, types.NamespacedName{Namespace: namespace, Name: "operators"},
			got); err != nil {
			return err
		}
		if len(got.Subjects) != 1 || got.Subjects[0].Name != "olga" {
			t.Fatalf("the subjects are %+v", got.Subjects)
		}
		return nil
	})
}

// TestAttackDependenciesOfOthers: an object takes along neither cluster-wide objects, which its author could not create
// in a member, nor those of other namespaces, whatever scripts make of its content.
func TestAttackDependenciesOfOthers(t *testing.T) {
	w := newWorld(t)
	w.startFederation(t)
	namespace, foreign := w.newNamespace(t), w.newNamespace(t)
	alice := w.asTenant(t, namespace)
	w.teachKind(t, "attack", "Carrier")
	grantTo(t, w.fleet, "attack-of-"+namespace,
		rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"get"}},
		rbacUser("alice"))
	apply(t, w.fleet, foreign, parse(t,
		`{apiVersion: v1, kind: Secret, metadata: {name: treasure}, stringData: {a: b}}`)...)
	customization := parse(t, `
apiVersion: config.karmada.io/v1alpha1
kind: ResourceInterpreterCustomization
metadata: {name: attack-carriers}
spec:
  target: {apiVersion: attack.example.com/v1, kind: Carrier}
  customizations:
    dependencyInterpretation:
      luaScript: |
        function GetDependencies(obj)
          return {{apiVersion = "v1", kind = "Secret", namespace = obj.spec.namespace, name = "treasure"}, {apiVersion = "v1", kind = "Secret", namespace = obj.metadata.namespace, name = "own"}}
        end
`)
	apply(t, w.fleet, "", customization...)
	t.Cleanup(func() { remove(t, w.fleet, customization[0]) })
	w.grant(t, namespace, "attack.example.com", "*")
	apply(t, alice, namespace, parse(t, fmt.Sprintf(`
apiVersion: policy.karmada.io/v1alpha1
kind: PropagationPolicy
metadata: {name: team}
spec:
  propagateDeps: true
  resourceSelectors: [{apiVersion: attack.example.com/v1, kind: Carrier}]
  placement: {clusterAffinity: {clusterNames: [member1]}}
---
{apiVersion: v1, kind: Secret, metadata: {name: own}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: last}}
---
apiVersion: attack.example.com/v1
kind: Carrier
metadata:
  name: carrier
  annotations:
    federation.trellis.garden/dependencies: '[{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRoleBinding","name":"attack-of-%[1]s"},
      {"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRole","labelSelector":{}},{"apiVersion":"v1","kind":"ConfigMap","name":"last"}]'
spec: {namespace: %[2]s}
`, namespace, foreign))...)
	eventually(t, "what may follow has followed", func() error {
		_, own := get(w.member["member1"], "v1", "Secret", namespace, "own")
		_, last := get(w.member["member1"], "v1", "ConfigMap", namespace, "last")
		return errors.Join(own, last)
	})
	w.warned(t, namespace, "DependenciesNotUnderstood", "treasure", "namespace")
	var bindings workv1alpha2.ClusterResourceBindingList
	if err := w.fleet.List(ctx, &bindings); err != nil {
		t.Fatal(err)
	}
	for _, b := range bindings.Items {
		if b.Spec.Resource.Kind == "ClusterRoleBinding" || b.Spec.Resource.Kind == "ClusterRole" {
			t.Errorf("%s %s goes to members", b.Spec.Resource.Kind, b.Spec.Resource.Name)
		}
	}
	b := &workv1alpha2.ResourceBinding{}
	if err := w.fleet.Get(ctx, types.NamespacedName{Namespace: foreign, Name: "treasure-secret"},
		b); !apierrors.IsNotFound(err) {
		t.Errorf("the Secret of another namespace goes to members: %v", err)
	}
}

// grant lets alice do something with the kinds of a group in a namespace.
func (w *world) grant(t *testing.T, namespace, group string, verbs ...string) {
	t.Helper()
	role := &rbacv1.Role{}
	if err := w.fleet.Get(ctx, types.NamespacedName{Namespace: namespace, Name: "team"}, role); err != nil {
		t.Fatal(err)
	}
	role.Rules = append(role.Rules,
		rbacv1.PolicyRule{APIGroups: []string{group}, Resources: []string{"*"}, Verbs: verbs})
	if err := w.fleet.Update(ctx, role); err != nil {
		t.Fatal(err)
	}
}

// TestAttackBindingOfAnotherNamespace: who writes a binding by hand gets nothing of another namespace, and nothing
// cluster-wide, to a member.
func TestAttackBindingOfAnotherNamespace(t *testing.T) {
	w := newWorld(t)
	w.startFederation(t)
	namespace, foreign := w.newNamespace(t), w.newNamespace(t)
	alice := w.asTenant(t, namespace)
	apply(t, w.fleet, foreign, parse(t,
		`{apiVersion: v1, kind: Secret, metadata: {name: treasure}, stringData: {a: b}}`)...)
	hand := func(name, resource string) *workv1alpha2.ResourceBinding {
		b := &workv1alpha2.ResourceBinding{}
		if err := yaml.UnmarshalStrict(fmt.Appendf(nil,
			`{metadata: {namespace: %s, name: %s}, spec: {clusters: [{name: member1}], resource: {%s}}}`, namespace,
			name, resource), b); err != nil {
			t.Fatal(err)
		}
		return b
	}
	err := alice.Create(ctx, hand("treasure-secret",
		"apiVersion: v1, kind: Secret, name: treasure, namespace: "+foreign))
	if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "spec.resource.namespace") {
		t.Errorf("a binding of another namespace's object: %v", err)
	}
	role := "attack-of-" + namespace
	grantTo(t, w.fleet, role, rbacv1.PolicyRule{
		APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"get"},
	}, rbacUser("alice"))
	if err := alice.Create(ctx, hand(role+"-clusterrole",
		"apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, name: "+role+", namespace: "+
			namespace)); err != nil {
		t.Fatal(err)
	}
	apply(t, alice, namespace, parse(t, tenantPolicy)...)
	apply(t, alice, namespace, parse(t, `{apiVersion: v1, kind: ConfigMap, metadata: {name: later}}`)...)
	eventually(t, "what was written later has arrived", func() error {
		_, err := get(w.member["member1"], "v1", "ConfigMap", namespace, "later")
		return err
	})
	if _, err := get(w.member["member1"], "v1", "Secret", foreign, "treasure"); !apierrors.IsNotFound(err) {
		t.Errorf("the Secret has arrived: %v", err)
	}
	if _, err := get(w.member["member1"], "rbac.authorization.k8s.io/v1", "ClusterRole", "",
		role); !apierrors.IsNotFound(err) {
		t.Errorf("the ClusterRole has arrived: %v", err)
	}
}
