package landscape

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	"k8s.io/client-go/rest"

	etcdcomponent "github.com/trellis-garden/trellis/pkg/component/etcd"
	"github.com/trellis-garden/trellis/pkg/etcd/status"
)

// unsavedAge is from which age on changes that are not in the bucket are a problem, also where nothing fails.
const unsavedAge = 10 * time.Minute

// gardenBackups tells what gardenlet tells of the etcds of shoots: whether all changes of the garden's etcd come to its
// bucket, and what was restored of it last.
func (l *Landscape) gardenBackups(ctx context.Context) health {
	ctx, cancel := context.WithTimeout(ctx, statusTimeout)
	defer cancel()
	told, err := l.askGardenEtcd(ctx)
	if err != nil {
		return backupHealth(err.Error(), "")
	}
	return backupHealth(backupProblem(told), lastRecovery(told))
}

// backupHealth is the line about the backups of the garden's etcd. Without a problem they are healthy.
func backupHealth(problem, recovery string) health {
	line := health{part: "garden's backups", healthy: problem == "", detail: problem}
	if line.healthy {
		line.detail = "all changes are saved" + recovery
	}
	return line
}

// backupProblem says why not all changes of an etcd come to its bucket; empty if they do.
func backupProblem(told *status.Status) string {
	name := etcdcomponent.Name(etcdcomponent.Main)
	if told.Store == nil {
		return name + " has no bucket; `up` gives it one"
	}
	for _, operation := range []string{status.Start, status.Delta, status.Full, status.Verification} {
		if failure := told.Store.Failure(operation); failure != nil {
			return fmt.Sprintf("%s, %s: %s of backups fails since %s: %s", name, told.Phase, operation,
				failure.Since.UTC().Format(time.RFC3339), failure.Message)
		}
	}
	if told.Phase != status.Serving {
		return fmt.Sprintf("%s: %s", name, told.Phase)
	}
	if told.Differs != nil {
		return name + " " + told.Differs.Describe()
	}
	since := told.Store.Delta.Succeeded
	if told.PhaseSince.After(since) {
		since = told.PhaseSince
	}
	if told.Time.Sub(since) > unsavedAge {
		return fmt.Sprintf("%s has saved no changes for more than %s", name, unsavedAge)
	}
	return ""
}

// lastRecovery tells of the last time that an etcd found its data lost or damaged; empty if it never did.
func lastRecovery(told *status.Status) string {
	if len(told.Recoveries) == 0 {
		return ""
	}
	return fmt.Sprintf("; %s %s", etcdcomponent.Name(etcdcomponent.Main),
		told.Recoveries[len(told.Recoveries)-1].Describe())
}

// askGardenEtcd asks all members of the garden's etcd for what the one tells that saves the changes. Where there are
// to be several, there may still be a single one.
func (l *Landscape) askGardenEtcd(ctx context.Context) (*status.Status, error) {
	s, err := l.state()
	if err != nil {
		return nil, err
	}
	c, err := connect(l.RuntimeKubeconfig())
	if err != nil {
		return nil, err
	}
	pods := etcdcomponent.PodNames(etcdcomponent.Main, etcdcomponent.Members(gardenAvailability(s.nodes())))
	told, failures := make([]*status.Status, len(pods)), make([]error, len(pods))
	var asking sync.WaitGroup
	for i, pod := range pods {
		asking.Go(func() { told[i], failures[i] = askMember(ctx, c.config, pod) })
	}
	asking.Wait()
	if len(pods) == 1 {
		return told[0], failures[0]
	}
	told = slices.DeleteFunc(told, func(s *status.Status) bool { return s == nil })
	if saving := status.Saving(told); saving != nil {
		return saving, nil
	}
	return nil, fmt.Errorf("no member of the garden's etcd says that it leads, which the one does that saves the "+
		"changes: %w", errors.Join(failures...))
}

// askMember asks the pod of a member through the runtime cluster's API server: the host reaches no pods.
func askMember(ctx context.Context, apiServer *rest.Config, pod string) (*status.Status, error) {
	via, err := rest.HTTPClientFor(apiServer)
	if err != nil {
		return nil, err
	}
	path := fmt.Sprintf("/api/v1/namespaces/%s/pods/http:%s:%d/proxy%s", gardenNS, pod, etcdcomponent.HealthPort,
		status.Path)
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, apiServer.Host+path, nil)
	if err != nil {
		return nil, err
	}
	response, err := via.Do(request)
	if err != nil {
		return nil, fmt.Errorf("asking %s: %w", pod, err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("asking %s: it answers with %s", pod, response.Status)
	}
	return status.Read(response.Body)
}
