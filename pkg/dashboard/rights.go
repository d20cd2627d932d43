package dashboard

import (
	"context"
	"net/http"

	"golang.org/x/sync/errgroup"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/trellis-garden/trellis/pkg/dashboard/clusters"
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
