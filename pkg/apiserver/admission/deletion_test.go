package admission

import (
	"slices"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/user"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
)

func registeredPlugins() []string {
	plugins := admission.NewPlugins()
	Register(plugins)
	return plugins.Registered()
}

func confirmed(by string) func(*gardencorev1beta1.Shoot) {
	return func(shoot *gardencorev1beta1.Shoot) {
		setAnnotation(shoot, gardencorev1beta1.ConfirmationDeletion, "true")
		if by != "" {
			setAnnotation(shoot, gardencorev1beta1.DeletionConfirmedBy, by)
		}
	}
}

func forged(by string) func(*gardencorev1beta1.Shoot) {
	return func(shoot *gardencorev1beta1.Shoot) { setAnnotation(shoot, gardencorev1beta1.DeletionConfirmedBy, by) }
}

func TestTheConfirmerIsRemembered(t *testing.T) {
	tests := map[string]struct {
		shoot, old *gardencorev1beta1.Shoot
		want       string
	}{
		"confirmed now":                      {aShoot(confirmed("")), aShoot(), "alice"},
		"confirmed on creation":              {aShoot(confirmed("")), nil, "alice"},
		"confirmed now, in another's name":   {aShoot(confirmed("bob")), aShoot(), "alice"},
		"was confirmed, changed by another":  {aShoot(confirmed("alice")), aShoot(confirmed("bob")), "bob"},
		"was confirmed, note removed":        {aShoot(confirmed("")), aShoot(confirmed("bob")), "bob"},
		"was confirmed before notes":         {aShoot(confirmed("alice")), aShoot(confirmed("")), ""},
		"confirmation taken back":            {aShoot(forged("bob")), aShoot(confirmed("bob")), ""},
		"not confirmed, note made by a user": {aShoot(forged("bob")), aShoot(), ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			rememberConfirmer(test.shoot, test.old, "alice")
			if got := test.shoot.Annotations[gardencorev1beta1.DeletionConfirmedBy]; got != test.want {
				t.Errorf("confirmed by %q, want %q", got, test.want)
			}
		})
	}
}

func TestSecondApproval(t *testing.T) {
	dual := func(services bool) *gardencorev1beta1.Project {
		return aProject(func(p *gardencorev1beta1.Project) {
			p.Spec.DualApprovalForDeletion = []gardencorev1beta1.DualApprovalForDeletion{{
				Resource: "shoots", Selector: metav1.LabelSelector{MatchLabels: map[string]string{"stage": "live"}},
				IncludeServiceAccounts: new(services),
			}}
		})
	}
	live := func(shoot *gardencorev1beta1.Shoot) { shoot.Labels = map[string]string{"stage": "live"} }
	robot := "system:serviceaccount:garden-demo:robot"
	tests := map[string]struct {
		shoot   *gardencorev1beta1.Shoot
		project *gardencorev1beta1.Project
		caller  string
		want    string
	}{
		"one person, one asked for": {aShoot(live, confirmed("alice")), aProject(), "alice", ""},
		"one person, two asked for": {
			aShoot(live, confirmed("alice")), dual(true), "alice",
			`"alice" confirmed the deletion, so somebody else has to delete`,
		},
		"two persons":           {aShoot(live, confirmed("alice")), dual(true), "bob", ""},
		"another kind of shoot": {aShoot(confirmed("alice")), dual(true), "alice", ""},
		"nobody knows who confirmed": {
			aShoot(live, confirmed("")), dual(true), "alice", "nobody knows who confirmed",
		},
		"a service account, included": {aShoot(live, confirmed(robot)), dual(true), robot, "somebody else"},
		"a service account, left out": {aShoot(live, confirmed(robot)), dual(false), robot, ""},
		"the garden, of a quota": {
			aShoot(live, confirmed("")), dual(true), "gardener.cloud:system:garden-controller-manager", "",
		},
		"a namespace without a project": {aShoot(live, confirmed("alice")), nil, "alice", ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			checkRefusal(t, checkSecondApproval(test.shoot, test.project, &user.DefaultInfo{Name: test.caller}),
				test.want)
		})
	}
}

func TestRemovedFinalizers(t *testing.T) {
	with := func(finalizers ...string) *gardencorev1beta1.Shoot {
		return aShoot(func(s *gardencorev1beta1.Shoot) { s.Finalizers = finalizers })
	}
	tests := map[string]struct {
		object, old *gardencorev1beta1.Shoot
		want        []string
	}{
		"none":  {with(), with(), nil},
		"kept":  {with("gardener"), with("gardener"), nil},
		"added": {with("gardener"), with(), nil},
		"removed": {
			with(), with("gardener", "gardener.cloud/reference-protection", "core.gardener.cloud/shootstate"),
			[]string{"gardener", "gardener.cloud/reference-protection", "core.gardener.cloud/shootstate"},
		},
		"another's":    {with(), with("example.com/mine"), nil},
		"a namesake's": {with(), with("gardener.example.com/mine"), nil},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := removedFinalizers(test.object, test.old); !slices.Equal(got, test.want) {
				t.Errorf("removed = %v, want %v", got, test.want)
			}
		})
	}
}

func TestIsGone(t *testing.T) {
	deleted := func(state gardencorev1beta1.LastOperationState) *gardencorev1beta1.Shoot {
		return aShoot(func(s *gardencorev1beta1.Shoot) {
			s.DeletionTimestamp = new(metav1.Now())
			s.Status.LastOperation = &gardencorev1beta1.LastOperation{
				Type: gardencorev1beta1.LastOperationTypeDelete, State: state,
			}
		})
	}
	if isGone(aShoot()) || isGone(deleted(gardencorev1beta1.LastOperationStateProcessing)) ||
		isGone(&gardencorev1beta1.Seed{}) {
		t.Error("what is still there must not count as gone")
	}
	if !isGone(deleted(gardencorev1beta1.LastOperationStateSucceeded)) {
		t.Error("a deletion that succeeded leaves nothing")
	}
}

func TestActsForTheGarden(t *testing.T) {
	for caller, want := range map[*user.DefaultInfo]bool{
		{Name: "gardener.cloud:system:garden-controller-manager"}:       true,
		{Name: "gardener.cloud:system:seed:local"}:                      true,
		{Name: "system:serviceaccount:seed-local:extension-federation"}: true,
		{Name: "alice"}: false,
		{Name: "system:serviceaccount:garden-demo:robot"}: false,
	} {
		if got := actsForTheGarden(caller); got != want {
			t.Errorf("%v: %v, want %v", caller, got, want)
		}
	}
}

func member(kind, name string, roles ...string) gardencorev1beta1.ProjectMember {
	subject := rbacv1.Subject{Kind: kind, Name: name}
	if kind == rbacv1.ServiceAccountKind {
		subject.Namespace = "garden-demo"
	} else {
		subject.APIGroup = rbacv1.GroupName
	}
	return gardencorev1beta1.ProjectMember{Subject: subject, Role: roles[0], Roles: roles[1:]}
}

func TestVerbsForProject(t *testing.T) {
	project := func(owner string, members ...gardencorev1beta1.ProjectMember) *gardencorev1beta1.Project {
		return aProject(func(p *gardencorev1beta1.Project) {
			p.Spec.Owner = &rbacv1.Subject{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: owner}
			p.Spec.Members = members
		})
	}
	whitelisted := func(p *gardencorev1beta1.Project, keys ...string) *gardencorev1beta1.Project {
		p.Spec.Tolerations = &gardencorev1beta1.ProjectTolerations{}
		for _, key := range keys {
			p.Spec.Tolerations.Whitelist = append(p.Spec.Tolerations.Whitelist, gardencorev1beta1.Toleration{Key: key})
		}
		return p
	}
	alice, bob := member(rbacv1.UserKind, "alice", "admin", "owner"), member(rbacv1.UserKind, "bob", "viewer")
	robot := member(rbacv1.ServiceAccountKind, "robot", "admin")
	promotedRobot := member(rbacv1.ServiceAccountKind, "robot", "admin", "uam")
	extensionRobot := member(rbacv1.ServiceAccountKind, "robot", "extension:reader")
	foreignRobot := member(rbacv1.UserKind, "system:serviceaccount:garden-demo2:robot", "viewer")
	promoted := member(rbacv1.UserKind, "bob", "viewer", "admin")
	reordered := member(rbacv1.UserKind, "alice", "owner", "admin")
	tests := map[string]struct {
		project, old *gardencorev1beta1.Project
		caller       string
		want         []string
	}{
		"founding a project":                 {project("alice", alice), nil, "alice", nil},
		"founding with members":              {project("alice", alice, bob), nil, "alice", nil},
		"founding for somebody else":         {project("bob", bob), nil, "alice", nil},
		"founding for another, with members": {project("bob", bob, alice), nil, "alice", []string{"manage-members"}},
		"founding with tolerations": {
			whitelisted(project("alice", alice), "special"), nil, "alice",
			[]string{"modify-spec-tolerations-whitelist"},
		},
		"owner adds a member": {project("alice", alice, bob), project("alice", alice), "alice", nil},
		"admin adds a member": {
			project("alice", alice, bob), project("alice", alice), "carol", []string{"manage-members"},
		},
		"admin adds a robot":    {project("alice", alice, robot), project("alice", alice), "carol", nil},
		"admin removes a robot": {project("alice", alice), project("alice", alice, robot), "carol", nil},
		"admin makes a robot a manager": {
			project("alice", alice, promotedRobot), project("alice", alice, robot), "carol", []string{"manage-members"},
		},
		"admin removes a manager": {
			project("alice", alice), project("alice", alice, promotedRobot), "carol", []string{"manage-members"},
		},
		"admin adds an extension's robot": {
			project("alice", alice, extensionRobot), project("alice", alice), "carol", []string{"manage-members"},
		},
		"admin adds another project's robot": {
			project("alice", alice, foreignRobot), project("alice", alice), "carol", []string{"manage-members"},
		},
		"admin gives a role": {
			project("alice", alice, promoted), project("alice", alice, bob), "carol", []string{"manage-members"},
		},
		"admin writes the same another way": {
			project("alice", reordered, bob), project("alice", alice, bob), "carol", nil,
		},
		"admin takes the project over": {
			project("carol", alice, bob, member(rbacv1.UserKind, "carol", "owner")), project("alice", alice, bob),
			"carol", []string{"manage-members"},
		},
		"whitelist unchanged": {
			whitelisted(project("alice", alice), "special"), whitelisted(project("alice", alice), "special"), "carol",
			nil,
		},
		"owner adds to the whitelist": {
			whitelisted(project("alice", alice), "special"), project("alice", alice), "alice",
			[]string{"modify-spec-tolerations-whitelist"},
		},
		"owner takes all from the whitelist": {
			project("alice", alice), whitelisted(project("alice", alice), "special"), "alice",
			[]string{"modify-spec-tolerations-whitelist"},
		},
		"an empty whitelist is no whitelist": {
			whitelisted(project("alice", alice)), project("alice", alice), "alice", nil,
		},
		"a service account written as a user": {
			project("alice", alice, member(rbacv1.UserKind, "system:serviceaccount:garden-demo:robot", "admin")),
			project("alice", alice), "carol", nil,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, needed := range verbsForProject(test.project, test.old, &user.DefaultInfo{Name: test.caller}) {
				got = append(got, needed.verb)
			}
			if !slices.Equal(got, test.want) {
				t.Errorf("verbs = %v, want %v", got, test.want)
			}
		})
	}
}

func TestVerbsForProfile(t *testing.T) {
	profile :=
		func(change func(*gardencorev1beta1.NamespacedCloudProfileSpec)) *gardencorev1beta1.NamespacedCloudProfile {
			p := &gardencorev1beta1.NamespacedCloudProfile{}
			change(&p.Spec)
			return p
		}
	nothing := func(*gardencorev1beta1.NamespacedCloudProfileSpec) {}
	nodes := func(most int32) func(*gardencorev1beta1.NamespacedCloudProfileSpec) {
		return func(s *gardencorev1beta1.NamespacedCloudProfileSpec) {
			s.Limits = &gardencorev1beta1.Limits{MaxNodesTotal: &most}
		}
	}
	versions := func(s *gardencorev1beta1.NamespacedCloudProfileSpec) {
		s.Kubernetes = &gardencorev1beta1.KubernetesSettings{
			Versions: []gardencorev1beta1.ExpirableVersion{{Version: "1.36.3"}},
		}
	}
	images := func(s *gardencorev1beta1.NamespacedCloudProfileSpec) {
		s.MachineImages = []gardencorev1beta1.MachineImage{{Name: "debian"}}
	}
	types := func(s *gardencorev1beta1.NamespacedCloudProfileSpec) {
		s.MachineTypes = []gardencorev1beta1.MachineType{{Name: "small"}}
	}
	tests := map[string]struct {
		profile, old *gardencorev1beta1.NamespacedCloudProfile
		want         []string
	}{
		"empty":             {profile(nothing), nil, nil},
		"new versions":      {profile(versions), nil, []string{"modify-spec-kubernetes"}},
		"versions kept":     {profile(versions), profile(versions), nil},
		"versions removed":  {profile(nothing), profile(versions), []string{"modify-spec-kubernetes"}},
		"images":            {profile(images), profile(nothing), []string{"modify-spec-machineimages"}},
		"machine types":     {profile(types), profile(nothing), nil},
		"limit raised":      {profile(nodes(20)), profile(nodes(10)), []string{"raise-spec-limits"}},
		"limit not changed": {profile(nodes(20)), profile(nodes(20)), nil},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, needed := range verbsForProfile(test.profile, test.old) {
				got = append(got, needed.verb)
			}
			if !slices.Equal(got, test.want) {
				t.Errorf("verbs = %v, want %v", got, test.want)
			}
		})
	}
}
