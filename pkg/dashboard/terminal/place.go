package terminal

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/klog/v2"

	"github.com/trellis-garden/trellis/pkg/dashboard/clusters"
	"github.com/trellis-garden/trellis/pkg/dashboard/reply"
)

const (
	namespacesPath = "/api/v1/namespaces"
	rbacPath       = "/apis/rbac.authorization.k8s.io/v1"

	// lease is how long a terminal lives without being renewed, renewEvery how often that is done.
	lease      = 2 * time.Minute
	renewEvery = 30 * time.Second
	// preparation is how long a pod may take until it runs, with its image being pulled.
	preparation = 10 * time.Minute
	// farewell is how long the removal may take.
	farewell = 10 * time.Second
)

// place is a terminal in a cluster.
type place struct {
	target
	cluster   *clusters.Cluster
	user      string
	image     string
	namespace *corev1.Namespace
	// ends is when the terminal is over, renewed or not.
	ends time.Time
	// renewEvery is how often the lease is renewed.
	renewEvery time.Duration
	now        func() time.Time
}

// make makes all that the terminal needs. Whoever stops in between leaves a Namespace that is over soon, in which
// everything is, or which owns it. It has to be removed also after an error: the answer may have been lost.
func (p *place) make(ctx context.Context) error {
	wanted := namespaceFor(p.namespace.Name, p.user, p.leased())
	if err := p.cluster.Do(ctx, http.MethodPost, namespacesPath, nil, wanted, p.namespace); err != nil {
		return err
	}
	what := fmt.Sprintf("%s has opened a terminal %s, until %s", p.user, p.what, p.ends.UTC().Format(time.RFC3339))
	if err := p.record(ctx, "TerminalOpened", what); err != nil {
		return err
	}
	keepers, users := keepersBinding(p.namespace), usersBinding(p.namespace, p.within)
	for _, part := range []struct {
		path   string
		object any
	}{
		{namespacesPath + "/" + p.namespace.Name + "/serviceaccounts", serviceAccount(p.namespace.Name)},
		{keepers.path, keepers.object},
		{"/apis/batch/v1/namespaces/" + p.namespace.Name + "/jobs", p.job()},
		// The last one: there are no such rights without a keeper.
		{users.path, users.object},
	} {
		if err := p.cluster.Do(ctx, http.MethodPost, part.path, nil, part.object, nil); err != nil {
			return err
		}
	}
	return nil
}

func (p *place) job() *batchv1.Job {
	workIn := p.within
	if workIn == "" {
		workIn = metav1.NamespaceDefault
	}
	return job(p.namespace.Name, p.image, workIn, p.ends.Sub(p.now()))
}

// leased is until when the terminal lives if nobody renews it from now on.
func (p *place) leased() time.Time {
	if until := p.now().Add(lease); until.Before(p.ends) {
		return until
	}
	return p.ends
}

// renew keeps the terminal for another while.
func (p *place) renew(ctx context.Context) error {
	change := map[string]any{"metadata": map[string]any{
		"uid": p.namespace.UID, "annotations": map[string]string{ExpiresAnnotation: expiresAt(p.leased())},
	}}
	return p.cluster.Do(ctx, http.MethodPatch, namespacesPath+"/"+p.namespace.Name, nil, change, nil)
}

// remove ends the terminal. What fails is mended by the keeper in the pod, when the lease has ended.
func (p *place) remove(ctx context.Context, why string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), farewell)
	defer cancel()
	log := klog.FromContext(ctx).WithValues("cluster", p.cluster.Name, "terminal", p.namespace.Name, "user", p.user)
	err := p.cluster.Do(ctx, http.MethodDelete, namespacesPath+"/"+p.namespace.Name, nil, nil, nil)
	if err != nil && !apierrors.IsNotFound(err) {
		log.Error(err, "The terminal could not be removed; it removes itself")
	}
	if p.namespace.UID != "" {
		message := fmt.Sprintf("the terminal of %s %s has ended: %s", p.user, p.what, why)
		if err := p.record(ctx, "TerminalEnded", message); err != nil {
			log.Error(err, "The end of the terminal could not be recorded")
		}
	}
	log.Info("A terminal has ended", "reason", why)
}

func (p *place) record(ctx context.Context, reason, message string) error {
	event := eventOf(p.namespace, reason, message, p.now())
	return p.cluster.Do(ctx, http.MethodPost, namespacesPath+"/"+event.Namespace+"/events", nil, event, nil)
}

// sweep removes terminals that are over, whoever's they were: servers that ended could not, and their pods neither.
func (p *place) sweep(ctx context.Context) error {
	var found struct {
		Items []metav1.PartialObjectMetadata `json:"items"`
	}
	query := url.Values{"labelSelector": {Label + "=true"}, "limit": {"500"}}
	if err := p.cluster.Do(ctx, http.MethodGet, namespacesPath, query, nil, &found); err != nil {
		return err
	}
	for i := range found.Items {
		old := &found.Items[i]
		if !old.DeletionTimestamp.IsZero() || !isTerminal(old) || !isOver(old, p.now()) {
			continue
		}
		// The lease may be renewed just now, and the name be another's.
		body := metav1.DeleteOptions{
			TypeMeta:      metav1.TypeMeta{APIVersion: "v1", Kind: "DeleteOptions"},
			Preconditions: &metav1.Preconditions{UID: &old.UID, ResourceVersion: &old.ResourceVersion},
		}
		err := p.cluster.Do(ctx, http.MethodDelete, namespacesPath+"/"+old.Name, nil, body, nil)
		if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
			return err
		}
	}
	return nil
}

// podOf waits until the pod of the terminal runs, and tells what it waits for.
func (p *place) podOf(ctx context.Context, tell func(string) error) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, preparation)
	defer cancel()
	last := ""
	for {
		pod, err := p.watchPods(ctx, func(awaited string) error {
			if awaited == last {
				return nil
			}
			last = awaited
			return tell(awaited)
		})
		if pod != "" || err != nil {
			return pod, err
		}
		select {
		case <-ctx.Done():
			return "", reply.Error(http.StatusGatewayTimeout, metav1.StatusReasonTimeout,
				"the pod of the terminal does not run: %s", last)
		case <-time.After(time.Second): // The API server ends watches from time to time.
		}
	}
}

// watchPods gives the name of a pod that runs, or nothing if the watch ended.
func (p *place) watchPods(ctx context.Context, tell func(string) error) (string, error) {
	path := namespacesPath + "/" + p.namespace.Name + "/pods"
	response, err := p.cluster.Open(ctx, http.MethodGet, path, url.Values{"watch": {"true"}}, nil, "application/json")
	if err != nil {
		if ctx.Err() != nil {
			return "", nil
		}
		return "", err
	}
	defer response.Body.Close()
	decoder := json.NewDecoder(response.Body)
	for {
		var event struct {
			Type   watch.EventType `json:"type"`
			Object json.RawMessage `json:"object"`
		}
		if decoder.Decode(&event) != nil || event.Type == watch.Error {
			return "", nil
		}
		var pod corev1.Pod
		if event.Type == watch.Deleted || json.Unmarshal(event.Object, &pod) != nil {
			continue
		}
		awaited, runs := stateOf(&pod)
		if runs {
			return pod.Name, nil
		}
		if err := tell(awaited); err != nil {
			return "", err
		}
	}
}

// stateOf says whether a pod runs, or else what it waits for.
func stateOf(pod *corev1.Pod) (awaited string, runs bool) {
	for _, container := range pod.Status.ContainerStatuses {
		switch {
		case container.State.Running != nil && pod.DeletionTimestamp == nil:
			return "", true
		case container.State.Waiting != nil && container.State.Waiting.Reason != "":
			return cut(strings.TrimSpace(container.State.Waiting.Reason + " " + container.State.Waiting.Message)), false
		}
	}
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodScheduled && condition.Status == corev1.ConditionFalse {
			return cut(strings.TrimSpace(condition.Reason + " " + condition.Message)), false
		}
	}
	return string(pod.Status.Phase), false
}
