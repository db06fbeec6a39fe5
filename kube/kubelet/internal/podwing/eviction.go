package podwing

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"github.com/kubeparts/kubeparts/cm/stats"
	"github.com/kubeparts/kubeparts/compose"
	"github.com/kubeparts/kubeparts/eviction"
	"github.com/kubeparts/kubeparts/eviction/notify"
	"github.com/kubeparts/kubeparts/kube/kubelet/internal/machine"
	"github.com/kubeparts/kubeparts/kube/kubelet/internal/stores"
	"github.com/kubeparts/kubeparts/kube/node"
	"github.com/kubeparts/kubeparts/podworker"
	"github.com/kubeparts/kubeparts/runtime"
)

type evictionDeps struct {
	runtime    machine.PodRuntime
	cgroups    machine.PodCgroups
	images     *machine.NodeImages
	standalone bool
	stats      *stats.Collector
	passed     func(eviction.Result, error)
}

// newEviction constructs the eviction manager.
func newEviction(b stores.Base, d evictionDeps) (*eviction.Manager, error) {
	policy, ignored, err := stores.EvictionPolicy(b.Configuration)
	if err != nil {
		return nil, err
	}
	for _, signal := range ignored {
		b.Logger.Warn("Ignored an eviction threshold: it follows from those of nodefs or imagefs", "signal", signal)
	}
	if b.Config.Runtime.Node != nil {
		policy.Thresholds = slices.DeleteFunc(policy.Thresholds, func(t eviction.Threshold) bool { return !stores.OfDisk(string(t.Signal)) })
	}
	policy.MachineMemory = d.runtime.Facts.MemoryBytes
	if d.standalone {
		// All pods are static, hence critical, and none could be evicted: only their
		// priority counts.
		policy.Critical = func(pod *v1.Pod) bool {
			return pod.Spec.Priority != nil && *pod.Spec.Priority >= 2_000_000_000 || pod.Spec.PriorityClassName == "system-node-critical"
		}
	}
	cfg := eviction.Config{
		Policy: policy, Summary: SummaryOf(d.stats),
		Pods: b.Pods, Disks: disks{NodeImages: d.images, base: b, runtime: d.runtime},
		Node: b.NodeRef, Record: b.Record, Logger: b.Logger,
		Hooks: b.Metrics.Eviction().Join(eviction.Hooks{
			Planned: notifyPressure(b.Config.Notify),
			Passed:  d.passed,
		}),
	}
	if b.Config.Host.MemoryCgroup != "" {
		cfg.Memory, cfg.Policy.MachineMemory = eviction.CgroupMemory(os.DirFS(b.Config.Host.MemoryCgroup)), 0
	}
	if b.Configuration.KernelMemcgNotification {
		if cfg.Notifiers, err = newNotifiers(b, d.cgroups, policy.Thresholds); err != nil {
			return nil, fmt.Errorf("kernelMemcgNotification: %w", err)
		}
	}
	if err := compose.Apply(b.Config.Adjust, &cfg); err != nil {
		return nil, err
	}
	return eviction.New(cfg)
}

// SummaryOf returns the function that measures the node, with its pods only if they are needed.
func SummaryOf(c *stats.Collector) func(context.Context, bool) (*statsapi.Summary, error) {
	return func(ctx context.Context, pods bool) (*statsapi.Summary, error) {
		if pods {
			return c.Summary(ctx, true)
		}
		return c.Node(ctx)
	}
}

// evictionGCPolicy is the policy of the sync loop, and includes the containers of all
// terminated pods (rule cg-11).
func evictionGCPolicy(p stores.Pods) runtime.GCPolicy {
	return runtime.GCPolicy{
		MaxPerContainer: 1,
		Keep:            p.Keep,
		Terminated: func(uid types.UID) bool {
			state, _ := p.State(uid)
			return state >= podworker.Cleaning
		},
	}
}

// notifyPressure returns a hook that notifies the operator of changed conditions of the node.
func notifyPressure(notify func(string)) func(*eviction.Plan) {
	var last []v1.NodeConditionType
	return func(p *eviction.Plan) {
		if !slices.Equal(last, p.Conditions) {
			last = p.Conditions
			notify(fmt.Sprintf("node pressure: %v", last))
		}
	}
}

// newNotifiers returns the notifiers of the memory of the node and of all pods (rule
// ev-59).
func newNotifiers(b stores.Base, groups machine.PodCgroups, thresholds []eviction.Threshold) (map[eviction.Signal]eviction.Notifier, error) {
	all := map[eviction.Signal]eviction.Notifier{}
	for signal, dir := range map[eviction.Signal]string{
		eviction.MemoryAvailable: cmp.Or(b.Config.Host.MemoryCgroup, rootMemoryDir()), eviction.AllocatableMemoryAvailable: groups.MemoryDir(),
	} {
		if dir == "" || !slices.ContainsFunc(thresholds, func(t eviction.Threshold) bool { return t.Signal == signal }) {
			continue
		}
		n, err := notify.New(notify.Config{Dir: dir, Logger: b.Logger})
		if err != nil {
			return nil, err
		}
		all[signal] = n
	}
	return all, nil
}

// rootMemoryDir returns the directory of the root memory cgroup.
func rootMemoryDir() string {
	const root = "/sys/fs/cgroup"
	if v1 := filepath.Join(root, "memory"); Exists(v1) {
		return v1
	}
	return root
}

func Exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// disks are the file systems of the node, with the images of NodeImages.
type disks struct {
	*machine.NodeImages
	base    stores.Base
	runtime machine.PodRuntime
}

// DeleteUnusedContainers removes terminated containers.
func (d disks) DeleteUnusedContainers(ctx context.Context) error {
	return d.runtime.CollectGarbage(ctx, evictionGCPolicy(d.base.Pods))
}

// Devices returns the devices of the root directory, of images and of container layers. A
// runtime that does not report a file system has it on that of the root.
func (d disks) Devices(ctx context.Context) (root, images, layers string, err error) {
	imageFS, layerFS, err := d.runtime.ImageFS(ctx)
	if err != nil {
		return "", "", "", err
	}
	if root, err = machine.DeviceOf(d.base.Config.RootDir); err != nil {
		return "", "", "", err
	}
	if images, err = deviceOf(imageFS, root); err != nil || len(layerFS) == 0 {
		return root, images, images, err
	}
	layers, err = deviceOf(layerFS, root)
	return root, images, layers, err
}

// deviceOf returns the device of a file system of the runtime; root if it is not reported or
// does not exist.
func deviceOf(all []runtime.FSUsage, root string) (string, error) {
	if len(all) == 0 || all[0].Mountpoint == "" {
		return root, nil
	}
	dev, err := machine.DeviceOf(all[0].Mountpoint)
	if errors.Is(err, fs.ErrNotExist) {
		return root, nil // nothing was pulled yet
	}
	return dev, err
}

// Pressure returns the pressure conditions of the node status.
func Pressure(m *eviction.Manager) *node.Pressure {
	return &node.Pressure{Memory: m.Under(v1.NodeMemoryPressure), Disk: m.Under(v1.NodeDiskPressure), PID: m.Under(v1.NodePIDPressure)}
}
