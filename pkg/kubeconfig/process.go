package kubeconfig

import (
	"errors"
	"fmt"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// OfProcess leads to the cluster that a process works for: by the file that its flag --kubeconfig names, whose default
// is $KUBECONFIG, or without one as the service account of its pod. cluster says whose API it is, as in "the fleet".
func OfProcess(path, cluster string) (*rest.Config, error) {
	// Without a path, BuildConfigFromFlags warns of what is ordinary.
	find := rest.InClusterConfig
	if path != "" {
		find = func() (*rest.Config, error) { return clientcmd.BuildConfigFromFlags("", path) }
	}
	config, err := find()
	if err != nil {
		return nil, Explain(cluster, err)
	}
	return config, nil
}

// Explain says of an error of finding the cluster that a process works for what to give: also where that is found by
// controller-runtime, which reads the same flag and variable.
func Explain(cluster string, err error) error {
	if clientcmd.IsEmptyConfig(err) || errors.Is(err, rest.ErrNotInCluster) {
		return fmt.Errorf("the API of %s is not known: name a file with a kubeconfig of it by --kubeconfig or "+
			"$KUBECONFIG, or run in a pod there, which has a service account", cluster)
	}
	return fmt.Errorf("reading the kubeconfig of %s: %w", cluster, err)
}
