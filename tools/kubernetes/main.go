// Kubernetes is the control plane that the integration tests run against, and the
// clients: etcd, kube-apiserver, kube-controller-manager, kube-scheduler, kube-proxy, kubectl and
// kubeadm in one program, which is built faster than four. Its name in argv[0] selects the program:
//
//	go build -o kube-apiserver . && ln -s kube-apiserver kubectl
//
// It is a module of its own, because k8s.io/kubernetes can only be required
// with a replace line for each of its parts.
package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"go.etcd.io/etcd/server/v3/etcdmain"
	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/logs/json/register"
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	kubectl "k8s.io/kubectl/pkg/cmd"
	kubectlutil "k8s.io/kubectl/pkg/cmd/util"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllers "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	proxy "k8s.io/kubernetes/cmd/kube-proxy/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
	kubeadm "k8s.io/kubernetes/cmd/kubeadm/app"
	kubeadmerrors "k8s.io/kubernetes/cmd/kubeadm/app/util/errors"
)

func main() {
	var command *cobra.Command
	switch name := filepath.Base(os.Args[0]); name {
	case "kube-apiserver":
		command = apiserver.NewAPIServerCommand()
	case "kube-controller-manager":
		command = controllers.NewControllerManagerCommand()
	case "kube-scheduler":
		command = scheduler.NewSchedulerCommand()
	case "kube-proxy":
		command = proxy.NewProxyCommand()
	case "etcd":
		etcdmain.Main(os.Args)
		return
	case "kubectl":
		// It words its errors itself.
		if err := cli.RunNoErrOutput(kubectl.NewDefaultKubectlCommand()); err != nil {
			kubectlutil.CheckErr(err)
		}
		return
	case "kubeadm":
		kubeadmerrors.HandleError(kubeadm.Run())
		return
	default:
		fmt.Fprintf(os.Stderr, "%s: start it as etcd, kube-apiserver, kube-controller-manager, kube-scheduler, kube-proxy, kubectl or kubeadm\n", name)
		os.Exit(2)
	}
	os.Exit(cli.Run(command))
}
