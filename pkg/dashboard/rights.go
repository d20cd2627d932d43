package dashboard

import (
	"context"
	"net/http"
	"slices"

	"golang.org/x/sync/errgroup"
	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-garden/trellis/pkg/dashboard/clusters"
	"github.com/trellis-garden/trellis/pkg/dashboard/live"
	"github.com/trellis-garden/trellis/pkg/dashboard/reply"
	"github.com/trellis-garden/trellis/pkg/dashboard/session"
)

const (
	// maxChecks bounds what one question costs the cluster.
	maxChecks = 100
	// concurrentChecks are asked at a time.
	concurrentChecks = 8
	authorizationAPI = "/apis/authorization.k8s.io/v1/"
)

// check is something that the user may do, or not.
type check struct {
	Verb        string `json:"verb"`
	Group       string `json:"group"`
	Resource    string `json:"resource"`
	Subresource string `json:"subresource"`
	Namespace   string `json:"namespace"`
	Name        string `json:"name"`
}

// rights asks a cluster what the user may do.
func (s *server) rights(w http.ResponseWriter, r *http.Request, current *session.Session) {
	var body struct {
		Cluster string  `json:"cluster"`
		Checks  []check `json:"checks"`
	}
	if err := reply.Read(r, &body); err != nil {
		reply.Failure(w, err)
		return
	}
	if len(body.Checks) > maxChecks {
		reply.Failure(w, reply.BadRequest("checks: at most %d are answered at once", maxChecks))
		return
	}
	cluster, err := s.clusters.Named(r.Context(), current.Credential, body.Cluster)
	if err != nil {
		reply.Failure(w, err)
		return
	}
	allowed := make([]bool, len(body.Checks))
	group, ctx := errgroup.WithContext(r.Context())
	group.SetLimit(concurrentChecks)
	for i, c := range body.Checks {
		group.Go(func() (err error) {
			allowed[i], err = c.ask(ctx, cluster)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		reply.Failure(w, s.clusters.Failed(cluster, err))
		return
	}
	reply.JSON(w, http.StatusOK, map[string]any{"allowed": allowed})
}

func (c check) ask(ctx context.Context, cluster *clusters.Cluster) (bool, error) {
	review := authorizationv1.SelfSubjectAccessReview{
		TypeMeta: metav1.TypeMeta{
			APIVersion: authorizationv1.SchemeGroupVersion.String(), Kind: "SelfSubjectAccessReview",
		},
		Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &authorizationv1.ResourceAttributes{
			Verb: c.Verb, Group: c.Group, Resource: c.Resource, Subresource: c.Subresource, Namespace: c.Namespace,
			Name: c.Name,
		}},
	}
	err := cluster.Do(ctx, http.MethodPost, authorizationAPI+"selfsubjectaccessreviews", nil, review, &review)
	return review.Status.Allowed, err
}

// maxProjects bounds how many projects of a member are read one by one.
const maxProjects = 200

// projects lists those that the user may open: all if they may list them, otherwise those that their rights name.
func (s *server) projects(w http.ResponseWriter, r *http.Request, current *session.Session) {
	garden, err := s.clusters.Garden(current.Credential)
	if err != nil {
		reply.Failure(w, err)
		return
	}
	rows, err := live.List(r.Context(), garden, gardencorev1beta1.SchemeGroupVersion, "projects")
	if apierrors.IsForbidden(err) {
		rows, err = ownProjects(r.Context(), garden)
	}
	if err != nil {
		reply.Failure(w, err)
		return
	}
	reply.JSON(w, http.StatusOK, map[string]any{"items": rows})
}

// ownProjects reads the projects that a member's rights name. Rules of RBAC are complete in the review, whatever other
// authorizers there are.
func ownProjects(ctx context.Context, garden *clusters.Cluster) ([]live.Row, error) {
	review := authorizationv1.SelfSubjectRulesReview{
		TypeMeta: metav1.TypeMeta{
			APIVersion: authorizationv1.SchemeGroupVersion.String(), Kind: "SelfSubjectRulesReview",
		},
		Spec: authorizationv1.SelfSubjectRulesReviewSpec{Namespace: metav1.NamespaceDefault},
	}
	err := garden.Do(ctx, http.MethodPost, authorizationAPI+"selfsubjectrulesreviews", nil, review, &review)
	if err != nil {
		return nil, err
	}
	names := projectNames(review.Status.ResourceRules)
	found := make([]live.Row, len(names))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(concurrentChecks)
	for i, name := range names {
		group.Go(func() error {
			row, err := live.Get(ctx, garden, gardencorev1beta1.SchemeGroupVersion, "projects", name)
			if apierrors.IsNotFound(err) || apierrors.IsForbidden(err) { // Rights may outlive a project for a moment.
				return nil
			}
			found[i] = row
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	return slices.DeleteFunc(found, func(row live.Row) bool { return row == nil }), nil
}

// projectNames are those that rules let one get.
func projectNames(rules []authorizationv1.ResourceRule) []string {
	var names []string
	for _, rule := range rules {
		if slices.Contains(rule.APIGroups, gardencorev1beta1.GroupName) && slices.Contains(rule.Resources,
			"projects") &&
			slices.Contains(rule.Verbs, "get") {
			names = append(names, rule.ResourceNames...)
		}
	}
	slices.Sort(names)
	names = slices.Compact(names)
	return names[:min(len(names), maxProjects)]
}
