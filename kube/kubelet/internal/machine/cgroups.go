package machine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/kubeparts/kubeparts/cm"
	"github.com/kubeparts/kubeparts/cm/cgroups"
	"github.com/kubeparts/kubeparts/cm/cgroups/host"
	"github.com/kubeparts/kubeparts/cm/oom"
	"github.com/kubeparts/kubeparts/compose"
	"github.com/kubeparts/kubeparts/kube/kubelet/internal/stores"
	"github.com/kubeparts/kubeparts/podworker/pipeline"
	"github.com/kubeparts/kubeparts/runtime/cri"
)

// PodCgroups are the cgroups of pods.
type PodCgroups struct {
	capacity

	// groups and tree are nil if pods have no cgroups; their limits are then enforced
	// by admission only.
	Groups *cm.Manager
	Tree   *host.Tree

	unused bool // the runtime of Config.Runtime.New limits its containers itself
}

// newCgroups prepares the cgroups of pods, if the process may create them and the runtime
// uses them.
func newCgroups(ctx context.Context, b stores.Base, s Services, total capacity, m *ResourceManagers) (PodCgroups, error) {
	n := PodCgroups{capacity: total}
	if s.Processes || os.Geteuid() != 0 || !*b.Configuration.CgroupsPerQOS {
		return n, nil
	}
	name := cmp.Or(cri.CgroupDriver(ctx, s.Service, b.Logger), cmp.Or(b.Configuration.CgroupDriver, string(cgroups.Cgroupfs)))
	driver, err := cgroups.ParseDriver(name)
	if err != nil {
		return n, fmt.Errorf("cgroupDriver: %w", err)
	}
	tree, err := host.New(host.Config{Driver: driver, Logger: b.Logger})
	if errors.Is(err, errors.ErrUnsupported) {
		return n, nil // not Linux
	} else if err != nil {
		return n, fmt.Errorf("cgroups of pods (disabled by cgroupsPerQOS: false with enforceNodeAllocatable: [none]): %w", err)
	}
	if err := checkHost(b, tree.Facts()); err != nil {
		return n, err
	}
	root, err := cgroups.ParseRoot(b.Configuration.CgroupRoot)
	if err != nil {
		return n, fmt.Errorf("cgroupRoot: %w", err)
	}
	policy, err := policyOf(b.Configuration, total.Total)
	if err != nil {
		return n, err
	}
	policy.ExclusiveCPUs = m.noQuota
	cfg := cm.Config{
		Tree: tree, Driver: driver, Root: root, Pods: cm.PodCgroups{Ledger: s.Ledger, IgnoreForeign: b.Config.Host.IgnoreForeignPods}, Hooks: b.Metrics.Cgroups(), Policy: policy, Capacity: total.Total, Reserved: total.reserved,
		Enforce: cm.Enforcement{
			Keys: b.Configuration.EnforceNodeAllocatable, SystemReservedCgroup: b.Configuration.SystemReservedCgroup, KubeReservedCgroup: b.Configuration.KubeReservedCgroup, CPUs: m.sharedCPUs(),
		},
		Processes: cm.ProcessCgroups{Agent: b.Configuration.KubeletCgroups, System: b.Configuration.SystemCgroups},
		Events:    cm.Events{Node: b.NodeRef, Record: b.Record}, Logger: b.Logger,
	}
	if err := compose.Apply(b.Config.Adjust, &cfg); err != nil {
		return n, err
	}
	groups, err := cm.New(cfg)
	if err != nil {
		return n, err
	}
	switch err := groups.Setup(ctx); {
	case err == nil:
		n.Groups, n.Tree = groups, tree
	case b.UserNamespace.Lenient() && stores.IsDenied(err):
		b.Logger.Warn("Failed to create cgroups of pods in a user namespace; limits are not enforced", "err", err)
	case stores.IsDenied(err):
		return n, fmt.Errorf("cgroups of pods (disabled by cgroupsPerQOS: false with enforceNodeAllocatable: [none]): %w", b.UserNamespace.Explain(err))
	default:
		return n, explainForeign(err)
	}
	return n, nil
}

// checkHost checks the machine (rules cm-29 to cm-31). Kernel parameters are set only if
// the Config permits it.
func checkHost(b stores.Base, facts cgroups.Facts) error {
	if err := cm.CheckVersion(facts, *b.Configuration.FailCgroupV1); err != nil {
		return err
	}
	if facts.Version == 1 {
		if err := stores.CheckCgroupV1(b.Configuration); err != nil {
			return err
		}
	}
	if swaps, err := os.ReadFile("/proc/swaps"); err == nil && *b.Configuration.FailSwapOn && cm.SwapOn(swaps) {
		return cm.ErrSwapOn
	}
	if !b.Config.Host.Manage {
		return nil
	}
	err := cm.CheckTunables(os.DirFS("/"), cm.Tunables(), b.Configuration.ProtectKernelDefaults, func(t cm.Tunable) error {
		return os.WriteFile(filepath.Join("/proc/sys", t.Name), []byte(t.Value), 0)
	})
	switch {
	case err == nil || b.Configuration.ProtectKernelDefaults:
		return err
	case b.UserNamespace.Lenient():
		b.Logger.Info("Kernel parameters not set, since the process is in a user namespace", "err", err)
		return nil
	case b.UserNamespace.Inside:
		return b.UserNamespace.Explain(err)
	}
	b.Logger.Warn("Failed to set kernel parameters", "err", err)
	return nil
}

// ForPods returns the cgroups for the agent; nil if pods have none.
func (n PodCgroups) ForPods() pipeline.Cgroups {
	if n.Groups == nil {
		return nil
	}
	return n.Groups
}

// MemoryDir returns the directory of the memory cgroup of all pods; "" if there is none.
func (n PodCgroups) MemoryDir() string {
	if n.Groups == nil {
		return ""
	}
	for _, dir := range n.Tree.Dirs(n.Groups.PodsRoot()) {
		for _, file := range []string{"memory.usage_in_bytes", "memory.current"} {
			if _, err := os.Stat(filepath.Join(dir, file)); err == nil {
				return dir
			}
		}
	}
	return ""
}

// Warning returns the limits that cannot be enforced, for the node status (rule ns-11);
// "" if all can.
func (n PodCgroups) Warning() string {
	if n.unused {
		return ""
	}
	if n.Groups == nil {
		return "pods have no cgroups; limits are not enforced"
	}
	if missing := n.Tree.Facts().Missing(); len(missing) > 0 {
		return "missing cgroup controllers, whose limits are not enforced: " + strings.Join(missing, ", ")
	}
	return ""
}

func (n PodCgroups) components() []stores.Component {
	if n.Groups == nil {
		return nil
	}
	return []stores.Component{n.Groups.Run}
}

// newOOMWatcher returns the component that reports processes killed by the kernel (rules
// oom-1, oom-2). Where the kernel log is not readable, the cgroups of pods are; without
// both nothing is reported.
func newOOMWatcher(b stores.Base, n PodCgroups) (stores.Component, error) {
	kmsg, err := b.UserNamespace.KernelLog(oom.OpenKmsg, b.Logger)
	if err != nil {
		return nil, err
	}
	if kmsg == nil && n.Groups == nil {
		return func(ctx context.Context) error { <-ctx.Done(); return nil }, nil
	}
	cfg := oom.Config{
		Kmsg: kmsg, Node: b.NodeRef, Record: b.Record, Logger: b.Logger,
		Handle: func(k oom.Kill) {
			b.Metrics.OOMKill(k)
			b.Logger.Info("Process killed by the kernel, out of memory", "kill", k.String())
		},
	}
	if n.Groups != nil {
		cfg.Cgroups = n.Groups
	}
	w, err := oom.New(cfg)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context) error {
		if err := w.Run(ctx); err != nil {
			b.Logger.Warn("Failed to watch for out-of-memory kills; they are not reported", "err", err)
		}
		<-ctx.Done()
		return nil
	}, nil
}
