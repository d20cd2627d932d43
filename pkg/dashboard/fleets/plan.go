package fleets

import (
	"context"
	"errors"
	"net/http"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-garden/trellis/pkg/dashboard/reply"
	"github.com/trellis-garden/trellis/pkg/federation/plan"
)

// maxDocuments bounds what one question costs the fleet.
const maxDocuments = 100

// plan predicts what documents would change.
func (h *Handler) plan(ctx context.Context, fleet client.Client, r *http.Request) (any, error) {
	var body struct {
		Documents string `json:"documents"`
		Namespace string `json:"namespace"`
		Delete    bool   `json:"delete"`
	}
	if err := reply.Read(r, &body); err != nil {
		return nil, err
	}
	if body.Namespace == "" {
		body.Namespace = metav1.NamespaceDefault
	}
	documents, err := plan.Parse(strings.NewReader(body.Documents), "documents")
	switch {
	case err != nil:
		return nil, refusal(err)
	case len(documents) == 0:
		return nil, reply.BadRequest("there are no documents")
	case len(documents) > maxDocuments:
		return nil, reply.BadRequest("there are %d documents, at most %d are planned at once", len(documents),
			maxDocuments)
	}
	proposals, err := plan.Check(ctx, fleet, documents, body.Namespace, body.Delete)
	if err != nil {
		return nil, refusalOfFleet(err)
	}
	input, err := plan.Read(ctx, fleet, proposals, plan.DefaultSettings(), h.Now())
	if err != nil {
		return nil, err
	}
	result := plan.Predict(ctx, input)
	hideSecrets(result)
	return result, nil
}

// hideSecrets takes out values that reach no page. That they change is told.
func hideSecrets(p *plan.Plan) {
	for i := range p.Objects {
		for j := range p.Objects[i].Fields {
			field := &p.Objects[i].Fields[j]
			field.Now = concealed(p.Objects[i].Kind, field.Path, field.Now)
			field.Then = concealed(p.Objects[i].Kind, field.Path, field.Then)
		}
	}
}

// refusalOfFleet tells what the fleet has against documents, unless it could not be asked.
func refusalOfFleet(err error) error {
	var status apierrors.APIStatus
	if errors.As(err, &status) && (status.Status().Code >= 500 || apierrors.IsUnauthorized(err) ||
		apierrors.IsTooManyRequests(err)) {
		return err
	}
	return refusal(err)
}

// refusal has a cause for each document that is refused.
func refusal(err error) error {
	var causes []metav1.StatusCause
	for _, one := range split(err) {
		causes = append(causes, metav1.StatusCause{
			Type: metav1.CauseTypeFieldValueInvalid, Field: "documents", Message: one.Error(),
		})
	}
	return reply.Invalid(err.Error(), causes...)
}

// split gives the errors that were joined.
func split(err error) []error {
	if joined, ok := err.(interface{ Unwrap() []error }); ok { // Only what is joined itself.
		return joined.Unwrap()
	}
	return []error{err}
}
