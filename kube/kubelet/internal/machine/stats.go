package machine

import (
	"os"
	"path/filepath"

	"k8s.io/apimachinery/pkg/types"
	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"github.com/kubeparts/kubeparts/cm/cgroups"
	"github.com/kubeparts/kubeparts/cm/stats"
	"github.com/kubeparts/kubeparts/compose"
	"github.com/kubeparts/kubeparts/kube/kubelet/internal/stores"
	"github.com/kubeparts/kubeparts/kube/kubelet/internal/volumes"
	"github.com/kubeparts/kubeparts/volume"
)

// newStats constructs the collector of the usage of the node and its pods.
func newStats(b stores.Base, rt PodRuntime, groups PodCgroups, vols *volumes.Volumes) (*stats.Collector, error) {
	cfg := stats.Config{
		NodeName: b.Config.NodeName, Runtime: Listed{rt, b.Pods.Table}, NodeDir: b.Config.RootDir, Logger: b.Logger,
		Pods: podFacts{vols.Manager, b, groups},
	}
	if b.Config.Runtime.Node == nil {
		cfg.Root = os.DirFS("/")
	}
	if groups.Groups != nil {
		cfg.Cgroups = groups.Tree
		cfg.System = map[string]cgroups.Name{statsapi.SystemContainerPods: groups.Groups.PodsRoot()}
		for name, path := range map[string]string{
			statsapi.SystemContainerKubelet: b.Configuration.KubeletCgroups, statsapi.SystemContainerRuntime: b.Config.Host.RuntimeCgroup, statsapi.SystemContainerMisc: b.Configuration.SystemCgroups,
		} {
			if group := cgroups.ParsePath(path, groups.Tree.Facts().Driver); len(group) > 0 { // a service of systemd is not reported
				cfg.System[name] = group
			}
		}
	}
	if err := compose.Apply(b.Config.Adjust, &cfg); err != nil {
		return nil, err
	}
	return stats.New(cfg)
}

// podFacts implements stats.Pods.
type podFacts struct {
	*volume.Manager
	b      stores.Base
	groups PodCgroups
}

// Cgroup returns the cgroup of a desired pod.
func (p podFacts) Cgroup(uid types.UID) (cgroups.Name, bool) {
	if p.groups.Groups == nil {
		return nil, false
	}
	if pod := p.b.Pods.DesiredPod(uid); pod != nil {
		return p.groups.Groups.PodName(pod), true
	}
	return nil, false
}

func (p podFacts) HostNetwork(uid types.UID) bool {
	pod := p.b.Pods.DesiredPod(uid)
	return pod != nil && pod.Spec.HostNetwork
}

func (p podFacts) Paths(namespace, name string, uid types.UID) stats.Paths {
	dir := filepath.Join(p.b.Config.RootDir, "pods", string(uid))
	return stats.Paths{Logs: podLogDir(p.b, namespace, name, uid), Hosts: filepath.Join(dir, "etc-hosts"), Messages: filepath.Join(dir, "containers")}
}
