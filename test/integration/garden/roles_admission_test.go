package garden

import (
	"context"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	authenticationv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/authentication/v1alpha1"
	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	securityv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/security/v1alpha1"
)

// attempt is one request of a person that RBAC alone does not decide.
type attempt struct {
	what, who string
	call      func(client.Client) error
	works     bool
}

// admissionOfRoles makes requests whose outcome depends on what is in them.
func admissionOfRoles(t *testing.T, own, other string) {
	namespace, others := gardencorev1beta1.ProjectNamePrefix+own, gardencorev1beta1.ProjectNamePrefix+other
	create(t, newProfile("roles"), newSeed("roles", "roles"), newShoot(namespace, "shoot", "roles"))
	attempts := append(attemptsOnProject(own), attemptsOnShoots(namespace, others)...)
	attempts = append(attempts, attemptsToGiveAway(namespace, others)...)
	for _, try := range attempts {
		who := clientsOf(t, try.who)[try.who]
		err := try.call(who)
		if (err == nil) != try.works || (!try.works && !apierrors.IsForbidden(err)) {
			t.Errorf("%s, %s: %v, want success = %v, or forbidden", try.who, try.what, err, try.works)
		}
	}
}

// changesProject updates a project without leaving a trace.
func changesProject(name string, change func(*gardencorev1beta1.ProjectSpec)) func(client.Client) error {
	return func(c client.Client) error {
		// garden-controller-manager writes the project, too
		return retry.RetryOnConflict(retry.DefaultBackoff, func() error {
			project := &gardencorev1beta1.Project{}
			if err := c.Get(context.Background(), client.ObjectKey{Name: name}, project); err != nil {
				return err
			}
			change(&project.Spec)
			return c.Update(context.Background(), project, client.DryRunAll)
		})
	}
}

func adds(subject rbacv1.Subject, role string) func(*gardencorev1beta1.ProjectSpec) {
	return func(spec *gardencorev1beta1.ProjectSpec) {
		spec.Members = append(spec.Members, gardencorev1beta1.ProjectMember{Subject: subject, Role: role})
	}
}

func attemptsOnProject(name string) []attempt {
	robot := rbacv1.Subject{
		Kind: rbacv1.ServiceAccountKind, Namespace: gardencorev1beta1.ProjectNamePrefix + name, Name: "robot",
	}
	friend := changesProject(name, adds(userSubject("friend"), gardencorev1beta1.ProjectMemberViewer))
	account := changesProject(name, adds(robot, gardencorev1beta1.ProjectMemberViewer))
	promotion := changesProject(name, func(spec *gardencorev1beta1.ProjectSpec) {
		for i := range spec.Members {
			if spec.Members[i].Role == gardencorev1beta1.ProjectMemberViewer {
				spec.Members[i].Role = gardencorev1beta1.ProjectMemberAdmin
			}
		}
	})
	whitelist := changesProject(name, func(spec *gardencorev1beta1.ProjectSpec) {
		spec.Tolerations = &gardencorev1beta1.ProjectTolerations{
			Whitelist: []gardencorev1beta1.Toleration{{Key: "secret"}},
		}
	})
	description := changesProject(name,
		func(spec *gardencorev1beta1.ProjectSpec) { purpose := "testing"; spec.Purpose = &purpose })
	founds := func(c client.Client) error {
		return c.Create(context.Background(), &gardencorev1beta1.Project{ObjectMeta: metav1.ObjectMeta{Name: "mine"}},
			client.DryRunAll)
	}
	return []attempt{
		{"adds a user to the project", person("owner", name), friend, true},
		{"adds a user to the project", person("admin", name), friend, false},
		{"adds a user to the project", person("uam", name), friend, true},
		{"adds a user to the project", person("viewer", name), friend, false},
		{"adds a user to the project", "stranger", friend, false},
		{"adds a user to the project", "operator", friend, true},
		{"makes the viewer an admin", person("admin", name), promotion, false},
		{"makes the viewer an admin", person("uam", name), promotion, true},
		{"adds a service account", person("admin", name), account, true},
		{"adds a service account", person("accounts", name), account, false},
		{"widens the whitelist of tolerations", person("owner", name), whitelist, false},
		{"widens the whitelist of tolerations", "operator", whitelist, true},
		{"changes the purpose of the project", person("admin", name), description, true},
		{"changes the purpose of the project", person("extension", name), description, false},
		{"founds a project", "stranger", founds, true},
	}
}

func makes(object client.Object) func(client.Client) error {
	return func(c client.Client) error {
		return c.Create(context.Background(), object.DeepCopyObject().(client.Object), client.DryRunAll)
	}
}

func attemptsOnShoots(namespace, others string) []attempt {
	own := namespace[len(gardencorev1beta1.ProjectNamePrefix):]
	other := others[len(gardencorev1beta1.ProjectNamePrefix):]
	shoot := &gardencorev1beta1.Shoot{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "shoot"}}
	bound := newShoot(namespace, "bound", "roles",
		func(s *gardencorev1beta1.Shoot) { seed := "roles"; s.Spec.SeedName = &seed })
	opens := func(subresource string, request client.Object) func(client.Client) error {
		return func(c client.Client) error {
			err := c.SubResource(subresource).Create(context.Background(), shoot.DeepCopy(), request)
			if apierrors.IsInvalid(err) {
				return nil // allowed; the shoot has no address yet
			}
			return err
		}
	}
	admin := opens("adminkubeconfig", &authenticationv1alpha1.AdminKubeconfigRequest{})
	viewer := opens("viewerkubeconfig", &authenticationv1alpha1.ViewerKubeconfigRequest{})
	deletes := func(c client.Client) error { return c.Delete(context.Background(), shoot.DeepCopy(), client.DryRunAll) }
	binds := func(c client.Client) error {
		return c.SubResource("binding").Patch(context.Background(), shoot.DeepCopy(),
			merge(`{"spec":{"seedName":"roles"}}`),
			&client.SubResourcePatchOptions{PatchOptions: client.PatchOptions{DryRun: []string{metav1.DryRunAll}}})
	}
	sees := func(c client.Client) error {
		return c.Get(context.Background(), client.ObjectKeyFromObject(shoot), &gardencorev1beta1.Shoot{})
	}
	return []attempt{
		{"sees the shoot", person("viewer", own), sees, true},
		{"sees another's shoot", person("admin", other), sees, false},
		{"orders a shoot", person("admin", own), makes(newShoot(namespace, "new", "roles")), true},
		{"orders a shoot", person("viewer", own), makes(newShoot(namespace, "new", "roles")), false},
		{
			"orders a shoot in another's project", person("admin", other), makes(newShoot(namespace, "new", "roles")),
			false,
		},
		{"chooses a seed", person("admin", own), makes(bound), false},
		{"chooses a seed", "operator", makes(bound), true},
		{"assigns the shoot", person("owner", own), binds, false},
		{"assigns the shoot", "operator", binds, true},
		{"deletes without confirmation", person("owner", own), deletes, false},
		{"opens the shoot", person("admin", own), admin, true},
		{"opens the shoot", person("viewer", own), admin, false},
		{"looks into the shoot", person("viewer", own), viewer, true},
		{"looks into another's shoot", person("viewer", other), viewer, false},
		{"looks into the shoot", person("extension", own), viewer, false},
	}
}

func attemptsToGiveAway(namespace, others string) []attempt {
	own := namespace[len(gardencorev1beta1.ProjectNamePrefix):]
	binding := func(to string) client.Object {
		return &securityv1alpha1.CredentialsBinding{
			ObjectMeta:     metav1.ObjectMeta{Namespace: namespace, Name: "new"},
			Provider:       securityv1alpha1.CredentialsBindingProvider{Type: "local"},
			CredentialsRef: corev1.ObjectReference{APIVersion: "v1", Kind: "Secret", Namespace: to, Name: "local"},
		}
	}
	grants := func(group, resource string) client.Object {
		return &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "new"},
			Rules: []rbacv1.PolicyRule{{APIGroups: []string{group}, Resources: []string{resource}, Verbs: reads}}}
	}
	profile := func(versions ...gardencorev1beta1.ExpirableVersion) client.Object {
		object := &gardencorev1beta1.NamespacedCloudProfile{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "new"},
		}
		object.Spec.Parent = gardencorev1beta1.CloudProfileReference{Kind: "CloudProfile", Name: "roles"}
		if len(versions) > 0 {
			object.Spec.Kubernetes = &gardencorev1beta1.KubernetesSettings{Versions: versions}
		}
		return object
	}
	tomorrow := metav1.NewTime(metav1.Now().AddDate(1, 0, 0))
	longer := profile(gardencorev1beta1.ExpirableVersion{Version: "1.35.4", ExpirationDate: &tomorrow})
	return []attempt{
		{"binds its own credentials", person("admin", own), makes(binding(namespace)), true},
		{"binds another's credentials", person("admin", own), makes(binding(others)), false},
		{"grants what it has", person("admin", own), makes(grants(gardencorev1beta1.GroupName, "shoots")), true},
		{
			fmt.Sprintf("grants %s to read private keys", namespace), person("admin", own),
			makes(grants(gardencorev1beta1.GroupName, "internalsecrets")), false,
		},
		{"makes a profile", person("admin", own), makes(profile()), true},
		{"makes versions of Kubernetes live longer", person("admin", own), makes(longer), false},
		{"makes versions of Kubernetes live longer", "operator", makes(longer), true},
		{"writes a secret", person("admin", own), makes(secretIn(namespace, "new")), true},
		{"writes a secret in another's project", person("admin", own), makes(secretIn(others, "new")), false},
	}
}
