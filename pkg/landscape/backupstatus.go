package landscape

import (
	"context"
	"fmt"
	"net/http"
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
	if saved := told.Store.Delta.Succeeded; told.Time.Sub(saved) > unsavedAge {
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

// askGardenEtcd asks through the runtime cluster's API server: the host reaches no pods.
func (l *Landscape) askGardenEtcd(ctx context.Context) (*status.Status, error) {
	c, err := connect(l.RuntimeKubeconfig())
	if err != nil {
		return nil, err
	}
	via, err := rest.HTTPClientFor(c.config)
	if err != nil {
		return nil, err
	}
	pod := etcdcomponent.PodNames(etcdcomponent.Main, 1)[0]
	path := fmt.Sprintf("/api/v1/namespaces/%s/pods/http:%s:%d/proxy%s", gardenNS, pod, etcdcomponent.HealthPort,
		status.Path)
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, c.config.Host+path, nil)
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
