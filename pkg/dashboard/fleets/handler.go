package fleets

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-garden/trellis/pkg/apis/fleetscheme"
	"github.com/trellis-garden/trellis/pkg/dashboard/clusters"
	"github.com/trellis-garden/trellis/pkg/dashboard/reply"
)

// Handler answers what lies below /api/fleet/<namespace>/<name>.
type Handler struct {
	Now func() time.Time

	mutex   sync.Mutex
	clients map[*clusters.Cluster]client.Client
}

// maxClients bounds how many fleets are remembered, each with the kinds that it serves.
const maxClients = 64

// questions by method and the rest of the path.
var questions = map[string]func(*Handler, context.Context, client.Client, *http.Request) (any, error){
	"GET explain":    aboutObject(explain),
	"GET overrides":  aboutObject(overridesOf),
	"POST plan":      (*Handler).plan,
	"POST rollouts":  (*Handler).control,
	"POST deletions": (*Handler).answer,
	"GET moves":      (*Handler).moves,
}

// aboutObject answers a question about the object that the query names.
func aboutObject[T any](ask func(context.Context, client.Client, Object) (T, error)) func(*Handler, context.Context,
	client.Client, *http.Request) (any, error) {
	return func(_ *Handler, ctx context.Context, fleet client.Client, r *http.Request) (any, error) {
		o := objectIn(r)
		if err := o.check(); err != nil {
			return nil, err
		}
		return ask(ctx, fleet, o)
	}
}

func objectIn(r *http.Request) Object {
	query := r.URL.Query()
	return Object{query.Get("apiVersion"), query.Get("kind"), query.Get("namespace"), query.Get("name")}
}

// Serve answers a question about a fleet, unless there is an error.
func (h *Handler) Serve(w http.ResponseWriter, r *http.Request, cluster *clusters.Cluster, question string) error {
	ask, found := questions[r.Method+" "+question]
	if !found {
		return reply.Error(http.StatusNotFound, metav1.StatusReasonNotFound, "there is nothing at this path")
	}
	ctx, cancel := context.WithTimeout(r.Context(), time.Minute)
	defer cancel()
	ctx, done := withQuestion(ctx, cluster.Memory, cluster.Credential)
	defer done()
	fleet, err := h.client(cluster)
	if err != nil {
		return err
	}
	answer, err := ask(h, ctx, fleet, r)
	switch {
	case err != nil:
		return told(err)
	case answer == nil:
		w.WriteHeader(http.StatusNoContent)
	default:
		reply.JSON(w, http.StatusOK, answer)
	}
	return nil
}

// internal is an error that is neither the user's, nor of the way to a cluster.
type internal struct{ error }

// told has errors of ours answered as such.
func told(err error) error {
	if of := (internal{}); errors.As(err, &of) {
		return reply.Error(http.StatusConflict, metav1.StatusReasonConflict, "%v", of.error)
	}
	return err
}

// client for a fleet, which knows the kinds that the fleet serves.
func (h *Handler) client(cluster *clusters.Cluster) (client.Client, error) {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	if known, found := h.clients[cluster]; found {
		return known, nil
	}
	if h.clients == nil || len(h.clients) >= maxClients {
		h.clients = map[*clusters.Cluster]client.Client{}
	}
	config := cluster.Config()
	config.QPS, config.Burst = 50, 100
	config.Transport = transport{config.Transport}
	result, err := client.New(config, client.Options{Scheme: fleetscheme.Scheme()})
	if err != nil {
		return nil, err
	}
	h.clients[cluster] = result
	return result, nil
}
