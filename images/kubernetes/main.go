// The kubernetes binary holds the five upstream programs of Kubernetes in one static file: it runs the program that it
// was called as (argv[0]), so one image layer serves every container of a control plane.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"sort"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/logs/json/register"
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"
	kubeapiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	kubecontrollermanager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	kubeproxy "k8s.io/kubernetes/cmd/kube-proxy/app"
	kubescheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
	kubelet "k8s.io/kubernetes/cmd/kubelet/app"
	"k8s.io/kubernetes/pkg/cluster/ports"

	"github.com/trellis-garden/trellis/images/kubernetes/await"
	_ "github.com/trellis-garden/trellis/images/kubernetes/reconnect"
)

func main() {
	programs := map[string]func() int{
		"kube-apiserver":          apiServer,
		"kube-controller-manager": controllerManager,
		"kube-scheduler":          func() int { return cli.Run(kubescheduler.NewSchedulerCommand()) },
		"kube-proxy":              func() int { return cli.Run(kubeproxy.NewProxyCommand()) },
		"kubelet":                 func() int { return cli.Run(kubelet.NewKubeletCommand(context.Background())) },
	}
	name := filepath.Base(os.Args[0])
	if run, ok := programs[name]; ok {
		os.Exit(run())
	}
	if len(os.Args) > 1 {
		if run, ok := programs[os.Args[1]]; ok {
			os.Args = os.Args[1:]
			os.Exit(run())
		}
	}
	names := make([]string, 0, len(programs))
	for n := range programs {
		names = append(names, n)
	}
	sort.Strings(names)
	fmt.Fprintf(os.Stderr, "kubernetes: call this file as, or with the first argument: %s\n", strings.Join(names, ", "))
	os.Exit(2)
}

// apiServer runs kube-apiserver when its etcd takes connections. Without that it would end after 20 seconds.
func apiServer() int {
	return after(await.Etcd, await.Program{Name: "kube-apiserver", Port: 6443, Alive: "/livez"},
		kubeapiserver.NewAPIServerCommand)
}

// controllerManager runs kube-controller-manager when its API server is ready. Without that it would end: at once where
// connections are refused, else after ten seconds. kube-scheduler waits by itself.
func controllerManager() int {
	return after(await.APIServer, await.Program{
		Name: "kube-controller-manager", Port: ports.KubeControllerManagerPort,
	}, kubecontrollermanager.NewControllerManagerCommand)
}

// after runs a program when a wait is over.
func after(wait func(context.Context, await.Program) error, p await.Program, command func() *cobra.Command) int {
	p.Args, p.Log = os.Args[1:], os.Stderr
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := wait(ctx, p)
	stop()
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", p.Name, err)
		return 0
	}
	return cli.Run(command())
}
