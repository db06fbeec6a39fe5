package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	goruntime "runtime"
	"slices"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	kubeletconfig "k8s.io/kubelet/config/v1beta1"
	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"github.com/kubeparts/kubeparts/eviction"
	"github.com/kubeparts/kubeparts/eviction/notify"
	"github.com/kubeparts/kubeparts/kube/node"
	"github.com/kubeparts/kubeparts/podworker"
	"github.com/kubeparts/kubeparts/runtime"
)

// declareEviction declares the flags of the kubelet that say when pods are ended
// for the node's sake. Without --config nothing is a reason: an agent that
// somebody tries must not end his pods because his disk is full already.
func declareEviction(fs *flag.FlagSet, o *options) {
	k := &o.kubelet
	if !o.configured() && k.EvictionHard == nil {
		k.EvictionHard = map[string]string{}
	}
	fs.Func("eviction-hard", "`thresholds` at which pods are evicted at once: memory.available<100Mi,nodefs.available<10%", pairs(&k.EvictionHard, "<"))
	fs.Func("eviction-soft", "`thresholds` at which pods are evicted after a grace period", pairs(&k.EvictionSoft, "<"))
	fs.Func("eviction-soft-grace-period", "`periods` of the soft thresholds: memory.available=1m30s", pairs(&k.EvictionSoftGracePeriod, "="))
	fs.Func("eviction-minimum-reclaim", "`amounts` to free beyond a threshold: nodefs.available=2Gi", pairs(&k.EvictionMinimumReclaim, "="))
	fs.DurationVar(&k.EvictionPressureTransitionPeriod.Duration, "eviction-pressure-transition-period", k.EvictionPressureTransitionPeriod.Duration, "`time` for which a condition of the node stays (default 5m)")
	fs.Func("eviction-max-pod-grace-period", "`seconds` that a pod has at a soft threshold (default 0)", func(s string) error {
		_, err := fmt.Sscan(s, &k.EvictionMaxPodGracePeriod)
		return err
	})
	fs.BoolVar(&k.KernelMemcgNotification, "kernel-memcg-notification", k.KernelMemcgNotification, "have the kernel tell at once when memory runs low")
	fs.StringVar(&o.memoryGroup, "memory-cgroup", "", "`directory` of the cgroup of which the memory is the node's, if that is not all of the machine's")
}

// evictionPolicy reads a KubeletConfiguration.
func evictionPolicy(k kubeletconfig.KubeletConfiguration, warn func(string)) (eviction.Policy, error) {
	settings := eviction.Settings{
		Hard: k.EvictionHard, Soft: k.EvictionSoft, SoftGracePeriod: k.EvictionSoftGracePeriod, MinimumReclaim: k.EvictionMinimumReclaim,
	}.WithDefaults(goruntime.GOOS, k.MergeDefaultEvictionSettings != nil && *k.MergeDefaultEvictionSettings)
	for _, signal := range settings.Ignored() {
		warn(fmt.Sprintf("the threshold of %s is not used: it follows from those of nodefs or imagefs", signal))
	}
	for _, of := range k.EnforceNodeAllocatable {
		settings.EnforcePods = settings.EnforcePods || of == "pods"
	}
	thresholds, err := settings.Parse()
	if err != nil {
		return eviction.Policy{}, err
	}
	return eviction.Policy{
		Thresholds: thresholds, MaxPodGracePeriod: int64(k.EvictionMaxPodGracePeriod),
		Transition:    k.EvictionPressureTransitionPeriod.Duration,
		NoLocalLimits: k.LocalStorageCapacityIsolation != nil && !*k.LocalStorageCapacityIsolation,
	}, nil
}

// pressure returns the conditions of the node's status.
func pressure(m *eviction.Manager) func() node.Pressure {
	return func() node.Pressure {
		return node.Pressure{Memory: m.Under(v1.NodeMemoryPressure), Disk: m.Under(v1.NodeDiskPressure), PID: m.Under(v1.NodePIDPressure)}
	}
}

// An evictor is what evictions are made with.
type evictor struct {
	*assembly
	rt      connected
	images  *imageKeeper
	summary func(ctx context.Context, fresh bool) (*statsapi.Summary, error)
}

// manager returns what keeps the node alive.
func (e evictor) manager() (*eviction.Manager, error) {
	policy, err := evictionPolicy(e.opts.kubelet, e.say)
	if err != nil {
		return nil, err
	}
	if e.cluster == nil {
		// All pods are static, hence critical: nothing could be evicted. Their
		// priority decides.
		policy.Critical = func(pod *v1.Pod) bool {
			return pod.Spec.Priority != nil && *pod.Spec.Priority >= 2_000_000_000 || pod.Spec.PriorityClassName == "system-node-critical"
		}
	}
	cfg := eviction.Config{
		Policy:  policy,
		Summary: e.summary, Pods: e.pods.running, Kill: e.kill, Cleaned: e.cleaned, Layout: e.layout,
		Containers: e.rt, GCPolicy: e.gcPolicy, Images: e.images.free, ImageBytes: e.images.bytes,
		MachineMemory: e.rt.facts.MemoryBytes,
		Node:          e.nodeRef(),
		Record:        e.record, Logger: e.logger,
		Hooks: e.count.evictions(e.seen.EvictionPass, func(c []v1.NodeConditionType) {
			e.say(fmt.Sprintf("the node is under %v", c))
		}),
	}
	if e.opts.memoryGroup != "" {
		cfg.Memory, cfg.MachineMemory = eviction.CgroupMemory(os.DirFS(e.opts.memoryGroup)), 0
	}
	if e.opts.kubelet.KernelMemcgNotification {
		if cfg.Notifiers, err = e.notifiers(policy.Thresholds); err != nil {
			return nil, fmt.Errorf("the kernel cannot tell when memory runs low (kernelMemcgNotification): %w", err)
		}
	}
	return eviction.New(cfg)
}

// notifiers tell of the memory of the node, and of that of all pods (ev-59).
func (e evictor) notifiers(thresholds []eviction.Threshold) (map[eviction.Signal]eviction.Notifier, error) {
	all := map[eviction.Signal]eviction.Notifier{}
	for signal, dir := range map[eviction.Signal]string{
		eviction.MemoryAvailable: e.memoryDir(), eviction.AllocatableMemoryAvailable: e.rt.node.memoryDir(),
	} {
		if dir == "" || !slices.ContainsFunc(thresholds, func(t eviction.Threshold) bool { return t.Signal == signal }) {
			continue
		}
		n, err := notify.New(notify.Config{Dir: dir, Logger: e.logger})
		if err != nil {
			return nil, err
		}
		all[signal] = n
	}
	return all, nil
}

// memoryDir is the cgroup of all pods; "" where they have none.
func (n *podNode) memoryDir() string {
	if n.groups == nil {
		return ""
	}
	for _, dir := range n.tree.Dirs(n.groups.PodsRoot()) {
		for _, file := range []string{"memory.usage_in_bytes", "memory.current"} {
			if _, err := os.Stat(filepath.Join(dir, file)); err == nil {
				return dir
			}
		}
	}
	return ""
}

// memoryDir is the cgroup of all that runs on the node.
func (e evictor) memoryDir() string {
	if e.opts.memoryGroup != "" {
		return e.opts.memoryGroup
	}
	const root = "/sys/fs/cgroup"
	if _, err := os.Stat(filepath.Join(root, "memory")); err == nil {
		return filepath.Join(root, "memory") // v1
	}
	return root
}

func (e evictor) kill(ctx context.Context, ev eviction.Eviction) error {
	_, err := e.pods.workers.KillAndWait(ctx, ev.Pod.UID, podworker.KillOptions{
		GracePeriodSeconds: &ev.GracePeriodSeconds, Evict: true, Ending: ev.Ending(),
	})
	return err
}

func (e evictor) cleaned(pod *v1.Pod) bool {
	state, known := e.pods.workers.Known(pod.UID)
	return !known || state == podworker.Finished
}

// gcPolicy is that of the loop, for a collection out of turn, and with the
// containers of all pods that have ended (cg-11).
func (e evictor) gcPolicy() runtime.GCPolicy {
	return runtime.GCPolicy{
		MaxPerContainer: 1,
		Removed: func(uid types.UID) bool {
			if removable, known := e.pods.workers.Removable(uid); known {
				return removable
			}
			return e.pods.pod(uid) == nil && e.pods.loop.Synced()
		},
		Ended: func(uid types.UID) bool { return e.pods.loop.State(uid) >= podworker.Cleaning },
	}
}

// layout is which file systems the node's directory, images and layers are on.
func (e evictor) layout(ctx context.Context) (eviction.Layout, error) {
	images, containers, err := e.rt.ImageFS(ctx)
	if err != nil {
		return 0, err
	}
	root, err := deviceOf(e.opts.root)
	if err != nil {
		return 0, err
	}
	of := func(all []runtime.FSUsage) (string, error) {
		if len(all) == 0 || all[0].Mountpoint == "" {
			return root, nil // it does not say: where the rest is
		}
		dev, err := deviceOf(all[0].Mountpoint)
		if errors.Is(err, fs.ErrNotExist) {
			return root, nil // nothing was pulled yet
		}
		return dev, err
	}
	imageDevice, err := of(images)
	if err != nil {
		return 0, err
	}
	containerDevice := imageDevice
	if len(containers) > 0 {
		if containerDevice, err = of(containers); err != nil {
			return 0, err
		}
	}
	return eviction.LayoutByDevice(root, imageDevice, containerDevice, false), nil
}
