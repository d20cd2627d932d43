package terminal

import (
	"context"
	"net/http"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	seedmanagementv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/seedmanagement/v1alpha1"
	"github.com/trellis-garden/trellis/pkg/dashboard/clusters"
	"github.com/trellis-garden/trellis/pkg/dashboard/reply"
	"github.com/trellis-garden/trellis/pkg/dashboard/session"
)

const (
	targetShoot        = "shoot"
	targetControlPlane = "controlplane"
)

// target is what a terminal is for.
type target struct {
	// namespace and name of the shoot in whose cluster it is; empty in a seed that is none.
	namespace, name string
	// seed whose access operators have stored.
	seed string
	// within is the namespace that its rights are bound to; empty for the whole cluster.
	within string
	// what it is for, in words.
	what string
}

// request is what a page asks for.
type request struct{ namespace, shoot, target string }

func requestOf(r *http.Request) (request, error) {
	query := r.URL.Query()
	asked := request{query.Get("namespace"), query.Get("shoot"), query.Get("target")}
	for field, value := range map[string]string{"namespace": asked.namespace, "shoot": asked.shoot} {
		if messages := validation.IsDNS1123Label(value); len(messages) > 0 {
			return request{}, reply.BadRequest("%s: %s", field, messages[0])
		}
	}
	switch asked.target {
	case "":
		asked.target = targetShoot
	case targetShoot, targetControlPlane:
	default:
		return request{}, reply.BadRequest("target must be shoot or controlplane")
	}
	return asked, nil
}

// find asks the garden where a terminal has to be. The user has to see what they ask for.
func (r request) find(ctx context.Context, garden *clusters.Cluster) (target, error) {
	var shoot gardencorev1beta1.Shoot
	path := "/apis/" + gardencorev1beta1.SchemeGroupVersion.String() + "/namespaces/" + r.namespace + "/shoots/" +
		r.shoot
	if err := garden.Do(ctx, http.MethodGet, path, nil, nil, &shoot); err != nil {
		return target{}, err
	}
	if r.target == targetControlPlane {
		return r.findControlPlane(ctx, garden, &shoot)
	}
	if gardencorev1beta1.IsWorkerless(&shoot) {
		return target{}, conflict("the cluster has no nodes of its own, so no pod for a terminal runs in it")
	}
	return target{namespace: r.namespace, name: r.shoot, what: "in the cluster"}, nil
}

// findControlPlane finds the seed of a shoot: another shoot, or one of which operators have stored the access.
func (r request) findControlPlane(ctx context.Context, garden *clusters.Cluster,
	shoot *gardencorev1beta1.Shoot) (target, error) {
	namespace := shoot.Status.TechnicalID
	if shoot.Status.SeedName == nil || *shoot.Status.SeedName == "" || namespace == "" {
		return target{}, conflict("the shoot has no control plane yet")
	}
	seed := *shoot.Status.SeedName
	if len(validation.IsDNS1123Label(namespace)) > 0 || len(validation.IsDNS1123Subdomain(seed)) > 0 {
		return target{}, conflict("the status of the shoot names no seed and no namespace")
	}
	var managed seedmanagementv1alpha1.ManagedSeed
	path := "/apis/" + seedmanagementv1alpha1.SchemeGroupVersion.String() + "/namespaces/" +
		gardencorev1beta1.GardenNamespace + "/managedseeds/" + seed
	err := garden.Do(ctx, http.MethodGet, path, nil, nil, &managed)
	found := target{
		within: namespace, what: "in the control plane " + namespace + " of " + r.namespace + "/" + r.shoot,
	}
	switch {
	case apierrors.IsNotFound(err) || err == nil && managed.Spec.Shoot == nil:
		found.seed = seed
	case err != nil:
		return target{}, clusters.SeedRefused(seed, err)
	default:
		found.namespace, found.name = gardencorev1beta1.GardenNamespace, managed.Spec.Shoot.Name
	}
	return found, nil
}

// open finds the cluster, and connects to it as the user may.
func (s *Server) open(ctx context.Context, asked request, of *session.Session, ends time.Time) (*place, error) {
	garden, err := s.options.Clusters.Garden(of.Credential)
	if err != nil {
		return nil, err
	}
	found, err := asked.find(ctx, garden)
	if err != nil {
		return nil, err
	}
	cluster, err := s.administrator(ctx, of, found)
	if err != nil {
		return nil, err
	}
	return &place{
		target: found, cluster: cluster, user: of.User, image: s.options.Image, ends: ends, now: s.options.Now,
		renewEvery: renewEvery,
		namespace:  &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: newName()}},
	}, nil
}

// administrator is the cluster of a target as the user may have it.
func (s *Server) administrator(ctx context.Context, of *session.Session, found target) (*clusters.Cluster, error) {
	if found.seed != "" {
		return s.options.Clusters.Seed(ctx, of.Credential, found.seed)
	}
	return s.options.Clusters.Administrator(ctx, of.Credential, found.namespace, found.name, lifetime+credentialMargin)
}

func conflict(message string) error {
	return reply.Error(http.StatusConflict, metav1.StatusReasonConflict, "%s", message)
}
