package trellisctl

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
)

// gardenKind is a kind of the garden's API that people list, target and have described.
type gardenKind struct {
	plural, singular, short string
	// inProjects says that the objects are in the namespaces of projects.
	inProjects bool
	// header names the columns, wide those that come with -o wide. AGE follows them.
	header, wide []string
	newList      func() client.ObjectList
	// cells reads what rows need beside their objects.
	cells func(ctx context.Context, s *Session) (cellsOf, error)
}

// cellsOf returns what stands in the columns of an object: those of the header, then the wide ones.
type cellsOf func(object client.Object) []string

var (
	projectKind = &gardenKind{
		plural: "projects", singular: "project", short: "proj",
		header:  []string{"PROJECT", "NAMESPACE", "STATUS", "OWNER"},
		wide:    []string{"PURPOSE", "MEMBERS", "CREATED BY"},
		newList: func() client.ObjectList { return &gardencorev1beta1.ProjectList{} },
		cells: func(context.Context, *Session) (cellsOf, error) {
			return typedCells(projectCells), nil
		},
	}
	shootKind = &gardenKind{
		plural: "shoots", singular: "shoot", short: "sh", inProjects: true,
		header:  []string{"SHOOT", "PROJECT", "SEED", "PROVIDER", "VERSION", "NODES", "LAST OPERATION", "STATUS"},
		wide:    []string{"PURPOSE", "REGION", "GARDENLET"},
		newList: func() client.ObjectList { return &gardencorev1beta1.ShootList{} },
		cells:   shootCells,
	}
	seedKind = &gardenKind{
		plural: "seeds", singular: "seed", short: "sd",
		header:  []string{"SEED", "PROVIDER", "REGION", "VERSION", "READY", "SHOOTS"},
		wide:    []string{"ZONES", "TAINTS", "GARDENLET"},
		newList: func() client.ObjectList { return &gardencorev1beta1.SeedList{} },
		cells:   seedCells,
	}
	// gardenKinds are in the order in which ls lists them.
	gardenKinds = []*gardenKind{projectKind, shootKind, seedKind}
)

// isCalled says whether one of the kind's names is this word.
func (k *gardenKind) isCalled(word string) bool {
	return word == k.plural || word == k.singular || word == k.short
}

func typedCells[T client.Object](cells func(T) []string) cellsOf {
	return func(object client.Object) []string {
		if typed, ok := object.(T); ok {
			return cells(typed)
		}
		return []string{object.GetName()}
	}
}

func projectCells(project *gardencorev1beta1.Project) []string {
	owner, creator := "", ""
	if project.Spec.Owner != nil {
		owner = project.Spec.Owner.Name
	}
	if project.Spec.CreatedBy != nil {
		creator = project.Spec.CreatedBy.Name
	}
	return []string{
		project.Name, deref(project.Spec.Namespace), string(project.Status.Phase), owner,
		deref(project.Spec.Purpose), strconv.Itoa(len(project.Spec.Members)), creator,
	}
}

func shootCells(ctx context.Context, s *Session) (cellsOf, error) {
	projects, err := s.projectsByNamespace(ctx)
	if err != nil {
		return nil, err
	}
	return typedCells(func(shoot *gardencorev1beta1.Shoot) []string {
		if projects[shoot.Namespace] == "" {
			projects[shoot.Namespace] = s.newProject(ctx, shoot.Namespace)
		}
		purpose := ""
		if shoot.Spec.Purpose != nil {
			purpose = string(*shoot.Spec.Purpose)
		}
		return []string{
			shoot.Name, projects[shoot.Namespace], deref(shoot.Spec.SeedName), shoot.Spec.Provider.Type,
			shoot.Spec.Kubernetes.Version, nodes(shoot), lastOperation(shoot.Status.LastOperation),
			shoot.Labels[gardencorev1beta1.LabelShootStatus], purpose, shoot.Spec.Region, shoot.Status.Gardener.Version,
		}
	}), nil
}

// newProject is the project of a namespace that was not there when projects were listed, or else the namespace.
func (s *Session) newProject(ctx context.Context, namespace string) string {
	projects, err := s.projectsByNamespace(ctx)
	if err != nil {
		return namespace
	}
	return orElse(projects[namespace], namespace)
}

func (s *Session) projectsByNamespace(ctx context.Context) (map[string]string, error) {
	projects := &gardencorev1beta1.ProjectList{}
	if err := s.client.List(ctx, projects); err != nil {
		return nil, fmt.Errorf("listing projects: %w", explainKinds(err))
	}
	names := make(map[string]string, len(projects.Items))
	for _, project := range projects.Items {
		names[deref(project.Spec.Namespace)] = project.Name
	}
	return names, nil
}

func seedCells(ctx context.Context, s *Session) (cellsOf, error) {
	used, err := s.shootsBySeed(ctx)
	if err != nil {
		return nil, err
	}
	return typedCells(func(seed *gardencorev1beta1.Seed) []string {
		ready, version := "Unknown", ""
		for _, condition := range seed.Status.Conditions {
			if condition.Type == gardencorev1beta1.SeedGardenletReady {
				ready = string(condition.Status)
			}
		}
		if seed.Status.Gardener != nil {
			version = seed.Status.Gardener.Version
		}
		return []string{
			seed.Name, seed.Spec.Provider.Type, seed.Spec.Provider.Region, deref(seed.Status.KubernetesVersion), ready,
			usedOf(seed, used(seed.Name)), strings.Join(seed.Spec.Provider.Zones, ","), seedTaints(seed), version,
		}
	}), nil
}

// usedOf is "2/250": the shoots that a seed has, and how many it could have.
func usedOf(seed *gardencorev1beta1.Seed, used string) string {
	if capacity, ok := seed.Status.Allocatable["shoots"]; ok {
		return used + "/" + capacity.String()
	}
	return used
}

func seedTaints(seed *gardencorev1beta1.Seed) string {
	var taints []string
	for _, taint := range seed.Spec.Taints {
		text := taint.Key
		if taint.Value != nil {
			text += "=" + *taint.Value
		}
		taints = append(taints, text)
	}
	return strings.Join(taints, ",")
}

// shootsBySeed counts the shoots of each seed. Users who may not see all shoots see a question mark.
func (s *Session) shootsBySeed(ctx context.Context) (func(seed string) string, error) {
	shoots := &gardencorev1beta1.ShootList{}
	err := s.client.List(ctx, shoots)
	if apierrors.IsForbidden(err) {
		return func(string) string { return "?" }, nil
	}
	if err != nil {
		return nil, fmt.Errorf("counting shoots: %w", err)
	}
	count := map[string]int{}
	for i := range shoots.Items {
		count[deref(shoots.Items[i].Spec.SeedName)]++
	}
	return func(seed string) string { return strconv.Itoa(count[seed]) }, nil
}
