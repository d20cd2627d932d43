package garden

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	securityv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/security/v1alpha1"
)

// decidedReferences says of every field that names another object who may reach what by it.
const decidedReferences = "../../../pkg/apis/testdata/references.txt"

// readerFields are the fields whose writer must be able to read what they name.
func readerFields(t *testing.T) []string {
	t.Helper()
	file, err := os.Open(decidedReferences)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	var fields []string
	for lines := bufio.NewScanner(file); lines.Scan(); {
		if words := strings.Fields(lines.Text()); len(words) == 2 && words[0] == "reader" {
			fields = append(fields, words[1])
		}
	}
	if len(fields) == 0 {
		t.Fatalf("%s has no field that only readers set", decidedReferences)
	}
	return fields
}

// listsOfReferences are fields whose items are tried by fields of their own.
var listsOfReferences = map[string]string{
	"core.v1beta1.ShootSpec.resources": "core.v1beta1.NamedResourceReference.resourceRef",
}

// siblings are what a type needs besides the field that is tried.
var siblings = map[string]string{
	"core.v1beta1.AdmissionPlugin":               `{"name":"ImagePolicyWebhook"}`,
	"core.v1beta1.AuthorizerKubeconfigReference": `{"authorizerName":"webhook"}`,
	"core.v1beta1.DNS":                           `{"domain":"attack.references.example"}`,
	"core.v1beta1.DNSProvider":                   `{"type":"local","primary":true}`,
	"core.v1beta1.NamedResourceReference":        `{"name":"resource"}`,
	"core.v1beta1.StructuredAuthorization":       `{"configMapName":"private"}`,
}

// step leads from a value to one in it: a field of a struct, or -1 for what a pointer points to, or for the first item
// of a slice.
type step int

const inside step = -1

// wayTo finds a field, as <group>.<version>.<type>.<field>, in a type of the garden.
func wayTo(in reflect.Type, wanted string, passed []reflect.Type) ([]step, bool) {
	switch in.Kind() {
	case reflect.Pointer, reflect.Slice:
		way, found := wayTo(in.Elem(), wanted, passed)
		return append([]step{inside}, way...), found
	case reflect.Struct:
	default:
		return nil, false
	}
	if slices.Contains(passed, in) || !strings.Contains(in.PkgPath(), "/pkg/apis/") {
		return nil, false
	}
	for i := range in.NumField() {
		if nameOfType(in)+"."+jsonName(in.Field(i)) == wanted {
			return []step{step(i)}, true
		}
		if way, found := wayTo(in.Field(i).Type, wanted, append(passed, in)); found {
			return append([]step{step(i)}, way...), true
		}
	}
	return nil, false
}

// nameOfType is how a type is called in the table of references.
func nameOfType(of reflect.Type) string {
	_, path, _ := strings.Cut(of.PkgPath(), "/pkg/apis/")
	return strings.ReplaceAll(path, "/", ".") + "." + of.Name()
}

func jsonName(of reflect.StructField) string {
	name, _, _ := strings.Cut(of.Tag.Get("json"), ",")
	return name
}

// reach follows a way, makes what is not there, and gives each type its siblings.
func reach(t *testing.T, value reflect.Value, way []step) reflect.Value {
	t.Helper()
	for _, next := range way {
		switch value.Kind() {
		case reflect.Pointer:
			if value.IsNil() {
				value.Set(reflect.New(value.Type().Elem()))
			}
			value = value.Elem()
		case reflect.Slice:
			if value.Len() == 0 {
				value.Set(reflect.MakeSlice(value.Type(), 1, 1))
			}
			value = value.Index(0)
		default:
			if needs := siblings[nameOfType(value.Type())]; needs != "" {
				if err := json.Unmarshal([]byte(needs), value.Addr().Interface()); err != nil {
					t.Fatal(err)
				}
			}
			value = value.Field(int(next))
		}
	}
	return value
}

// target is what a field is made to name.
type target struct{ kind, namespace, name string }

// kindFor guesses from a field's name which kind it names.
func kindFor(field string) string {
	switch last := field[strings.LastIndex(field, ".")+1:]; {
	case last == "quotas":
		return "Quota"
	case strings.HasPrefix(last, "configMap"):
		return "ConfigMap"
	}
	return "Secret"
}

// set names the target in a field of whatever type.
func set(t *testing.T, field reflect.Value, to target) {
	t.Helper()
	apiVersion := "v1"
	if to.kind == "Quota" || to.kind == "InternalSecret" {
		apiVersion = gardencorev1beta1.SchemeGroupVersion.String()
	}
	switch value := field.Addr().Interface().(type) {
	case *string:
		*value = to.name
	case **string:
		*value = &to.name
	case *corev1.SecretReference:
		*value = corev1.SecretReference{Namespace: to.namespace, Name: to.name}
	case *corev1.ObjectReference:
		*value = corev1.ObjectReference{APIVersion: apiVersion, Kind: to.kind, Namespace: to.namespace, Name: to.name}
	case **corev1.ObjectReference:
		*value = &corev1.ObjectReference{APIVersion: apiVersion, Kind: to.kind, Namespace: to.namespace, Name: to.name}
	case *[]corev1.ObjectReference:
		*value = []corev1.ObjectReference{
			{APIVersion: apiVersion, Kind: to.kind, Namespace: to.namespace, Name: to.name},
		}
	case *autoscalingv1.CrossVersionObjectReference:
		*value = autoscalingv1.CrossVersionObjectReference{APIVersion: apiVersion, Kind: to.kind, Name: to.name}
	case **autoscalingv1.CrossVersionObjectReference:
		*value = &autoscalingv1.CrossVersionObjectReference{APIVersion: apiVersion, Kind: to.kind, Name: to.name}
	default:
		t.Fatalf("%T names an object in a way that this test does not know", value)
	}
}

// referrer makes an object that names the target in a field.
func referrer(t *testing.T, field, namespace string, to target) client.Object {
	t.Helper()
	own := corev1.ObjectReference{APIVersion: "v1", Kind: "Secret", Namespace: namespace, Name: "private"}
	for _, root := range []client.Object{
		newShoot(namespace, "referrer", "references",
			func(s *gardencorev1beta1.Shoot) { s.Spec.Kubernetes.Version = "1.34.9" }),
		&gardencorev1beta1.SecretBinding{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "referrer"},
			Provider:   &gardencorev1beta1.SecretBindingProvider{Type: "local"},
			SecretRef:  corev1.SecretReference{Namespace: namespace, Name: "private"},
		},
		&securityv1alpha1.CredentialsBinding{
			ObjectMeta:     metav1.ObjectMeta{Namespace: namespace, Name: "referrer"},
			Provider:       securityv1alpha1.CredentialsBindingProvider{Type: "local"},
			CredentialsRef: own,
		},
	} {
		value := reflect.ValueOf(root).Elem()
		if way, found := wayTo(value.Type(), field, nil); found {
			set(t, reach(t, value, way), to)
			// such a Secret has to be a resource, too
			if shoot, ok := root.(*gardencorev1beta1.Shoot); ok && strings.HasSuffix(field, ".kubeconfigSecretName") {
				shoot.Spec.Resources = []gardencorev1beta1.NamedResourceReference{{Name: "resource",
					ResourceRef: autoscalingv1.CrossVersionObjectReference{
						APIVersion: "v1", Kind: "Secret", Name: to.name,
					}}}
			}
			return root
		}
	}
	t.Fatalf("%s is in no Shoot, SecretBinding or CredentialsBinding: teach this test the kind", field)
	return nil
}

// TestAttackReaderReferences has somebody name, in each field that gives access to another object, one that he may not
// read: the admin of a project one of another project, and who orders shoots and reads no Secret one of his own
// project.
func TestAttackReaderReferences(t *testing.T) {
	const project, others = "readers", "readers-b"
	startControllerManager(t)
	newPeople(t, project)
	namespace, foreign := newReferences(t, project), gardencorev1beta1.ProjectNamePrefix+others
	newProject(t, others)
	create(t, secretIn(foreign, "private"),
		&gardencorev1beta1.Quota{ObjectMeta: metav1.ObjectMeta{Namespace: foreign, Name: "private"}, Spec: quotaSpec()})
	clients := clientsOf(t, person("admin", project), "clerk@"+project)
	admin, clerk := clients[person("admin", project)], clients["clerk@"+project]
	for _, c := range clients {
		eventually(t, func() error { return makes(newShoot(namespace, "plain", "references"))(c) })
	}
	for _, field := range readerFields(t) {
		if items, isList := listsOfReferences[field]; isList {
			if !slices.Contains(readerFields(t), items) {
				t.Errorf("%s: its items, %s, are not tried", field, items)
			}
			continue
		}
		try := func(who client.Client, kind, in, name string) error {
			return makes(referrer(t, field, namespace, target{kind, in, name}))(who)
		}
		kind := kindFor(field)
		if err := try(admin, kind, namespace, "private"); err != nil && !isAboutContent(err) {
			t.Errorf("%s: the admin names what he may read: %v", field, err)
		}
		if err := try(clerk, kind, namespace, "private"); !isUnread(err) {
			t.Errorf("%s: the clerk names what he may not read: %v", field, err)
		}
		if err := try(admin, kind, foreign, "private"); writes(t, field, "elsewhere") && !isUnread(err) {
			t.Errorf("%s: the admin names what is another project's: %v", field, err)
		}
		if err := try(admin, kind, namespace, "../../"+foreign+"/secrets/private"); !apierrors.IsInvalid(err) {
			t.Errorf("%s: the admin names a path: %v", field, err)
		}
		if err := try(admin, "InternalSecret", namespace,
			"private"); kind != "Quota" && writes(t, field, "InternalSecret") && !isUnread(err) &&
			!apierrors.IsInvalid(err) {
			t.Errorf("%s: the admin names what no person reads: %v", field, err)
		}
	}
	t.Run("many", func(t *testing.T) { attackByMany(t, admin, namespace) })
}

// attackByMany names a hundred objects in one Shoot, under what would hold up everybody's writes if garden-apiserver
// read a few objects a second.
func attackByMany(t *testing.T, admin client.Client, namespace string) {
	// At five a second it would take 38 seconds.
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	shoot := newShoot(namespace, "many", "references")
	for i := range 100 {
		name := fmt.Sprintf("missing-%d", i)
		shoot.Spec.Resources = append(shoot.Spec.Resources,
			gardencorev1beta1.NamedResourceReference{Name: name, ResourceRef: autoscalingv1.CrossVersionObjectReference{
				APIVersion: "v1", Kind: "Secret", Name: name,
			}})
	}
	if err := admin.Create(ctx, shoot, client.DryRunAll); !apierrors.IsInvalid(err) ||
		!strings.Contains(err.Error(), "missing-99") {
		t.Errorf("a shoot with a hundred references: %v, want it to say at once what is missing", err)
	}
}

func isUnread(err error) bool {
	return apierrors.IsForbidden(err) && strings.Contains(err.Error(), "may not get")
}

// isAboutContent tells whether the object that was named is what is wrong: those of this test are empty.
func isAboutContent(err error) bool {
	return apierrors.IsInvalid(err) && strings.Contains(err.Error(), "spec.kubernetes.kubeAPIServer.")
}

// namespacesIgnored are fields whose namespace has no meaning: they name an object in that of their Shoot.
var namespacesIgnored = sets.New("core.v1beta1.AuditPolicy.configMapRef")

// writes tells whether what names an object in a field says its namespace "elsewhere", or its kind "InternalSecret".
func writes(t *testing.T, field, what string) bool {
	t.Helper()
	content, err := json.Marshal(referrer(t, field, "own", target{"InternalSecret", "elsewhere", "private"}))
	if err != nil {
		t.Fatal(err)
	}
	return strings.Contains(string(content), strconv.Quote(what)) && !namespacesIgnored.Has(field)
}

func quotaSpec() gardencorev1beta1.QuotaSpec {
	return gardencorev1beta1.QuotaSpec{
		Scope:   corev1.ObjectReference{APIVersion: gardencorev1beta1.SchemeGroupVersion.String(), Kind: "Project"},
		Metrics: corev1.ResourceList{},
	}
}

// newReferences makes what fields may name, and a clerk, who orders shoots and binds credentials without reading any.
func newReferences(t *testing.T, project string) (namespace string) {
	t.Helper()
	namespace = gardencorev1beta1.ProjectNamePrefix + project
	profile := newProfile("references")
	profile.Spec.Kubernetes.Versions = append(profile.Spec.Kubernetes.Versions,
		gardencorev1beta1.ExpirableVersion{Version: "1.34.9"})
	role := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "clerk"}, Rules: []rbacv1.PolicyRule{
		{
			APIGroups: []string{gardencorev1beta1.GroupName, securityv1alpha1.GroupName},
			Resources: []string{"shoots", "secretbindings", "credentialsbindings"}, Verbs: all,
		},
	}}
	create(t, profile, newSeed("references", "references"), role,
		&rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "clerk"},
			Subjects:   []rbacv1.Subject{userSubject("clerk@" + project)},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "clerk"},
		},
		secretIn(namespace, "private"),
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "private"}},
		&gardencorev1beta1.Quota{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "private"}, Spec: quotaSpec(),
		},
	)
	return namespace
}
