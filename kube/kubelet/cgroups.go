package kubelet

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
	"github.com/kubeparts/kubeparts/podworker/pipeline"
	"github.com/kubeparts/kubeparts/runtime/cri"
)

// podCgroups are the cgroups of pods.
type podCgroups struct {
	capacity

	// groups and tree are nil if pods have no cgroups; their limits are then enforced
	// by admission only.
	groups *cm.Manager
	tree   *host.Tree
}

// newCgroups prepares the cgroups of pods, if the process may create them and the runtime
// uses them.
func newCgroups(ctx context.Context, b base, s services, total capacity, m *resourceManagers) (podCgroups, error) {
	n := podCgroups{capacity: total}
	if s.Processes || os.Geteuid() != 0 || !*b.k.CgroupsPerQOS {
		return n, nil
	}
	name := cmp.Or(cri.CgroupDriver(ctx, s.Service, b.logger), cmp.Or(b.k.CgroupDriver, string(cgroups.Cgroupfs)))
	driver, err := cgroups.ParseDriver(name)
	if err != nil {
		return n, fmt.Errorf("cgroupDriver: %w", err)
	}
	tree, err := host.New(host.Config{Driver: driver, Logger: b.logger})
	if errors.Is(err, errors.ErrUnsupported) {
		return n, nil // not Linux
	} else if err != nil {
		return n, fmt.Errorf("cgroups of pods (disabled by cgroupsPerQOS: false with enforceNodeAllocatable: [none]): %w", err)
	}
	if err := checkHost(b, tree.Facts()); err != nil {
		return n, err
	}
	root, err := cgroups.ParseRoot(b.k.CgroupRoot)
	if err != nil {
		return n, fmt.Errorf("cgroupRoot: %w", err)
	}
	policy, err := policyOf(b.k, total.total)
	if err != nil {
		return n, err
	}
	policy.ExclusiveCPUs = m.exclusiveCPUs
	cfg := cm.Config{
		Tree: tree, Driver: driver, Root: root, Pods: cm.PodCgroups{Ledger: s.ledger, IgnoreForeign: b.cfg.Host.IgnoreForeignPods}, Hooks: b.metrics.Cgroups(), Policy: policy, Capacity: total.total, Reserved: total.reserved,
		Enforce: cm.Enforcement{
			Keys: b.k.EnforceNodeAllocatable, SystemReservedCgroup: b.k.SystemReservedCgroup, KubeReservedCgroup: b.k.KubeReservedCgroup, CPUs: m.sharedCPUs(),
		},
		Processes: cm.ProcessCgroups{Agent: b.k.KubeletCgroups, System: b.k.SystemCgroups},
		Events:    cm.Events{Node: b.nodeRef, Record: b.record}, Logger: b.logger,
	}
	if err := compose.Apply(b.cfg.Adjust, "Cgroups", &cfg); err != nil {
		return n, err
	}
	groups, err := cm.New(cfg)
	if err != nil {
		return n, err
	}
	switch err := groups.Setup(ctx); {
	case err == nil:
		n.groups, n.tree = groups, tree
	case b.userNamespace.lenient() && isDenied(err):
		b.logger.Warn("Failed to create cgroups of pods in a user namespace; limits are not enforced", "err", err)
	case isDenied(err):
		return n, fmt.Errorf("cgroups of pods (disabled by cgroupsPerQOS: false with enforceNodeAllocatable: [none]): %w", b.userNamespace.explain(err))
	default:
		return n, explainForeign(err)
	}
	return n, nil
}

// checkHost checks the machine (rules cm-29 to cm-31). Kernel parameters are set only if
// the Config permits it.
func checkHost(b base, facts cgroups.Facts) error {
	if err := cm.CheckVersion(facts, *b.k.FailCgroupV1); err != nil {
		return err
	}
	if facts.Version == 1 {
		if err := checkCgroupV1(b.k); err != nil {
			return err
		}
	}
	if swaps, err := os.ReadFile("/proc/swaps"); err == nil && *b.k.FailSwapOn && cm.SwapOn(swaps) {
		return cm.ErrSwapOn
	}
	if !b.cfg.Host.Manage {
		return nil
	}
	err := cm.CheckTunables(os.DirFS("/"), cm.Tunables(), b.k.ProtectKernelDefaults, func(t cm.Tunable) error {
		return os.WriteFile(filepath.Join("/proc/sys", t.Name), []byte(t.Value), 0)
	})
	switch {
	case err == nil || b.k.ProtectKernelDefaults:
		return err
	case b.userNamespace.lenient():
		b.logger.Info("Kernel parameters not set, since the process is in a user namespace", "err", err)
		return nil
	case b.userNamespace.inside:
		return b.userNamespace.explain(err)
	}
	b.logger.Warn("Failed to set kernel parameters", "err", err)
	return nil
}

// forPods returns the cgroups for the agent; nil if pods have none.
func (n podCgroups) forPods() pipeline.Cgroups {
	if n.groups == nil {
		return nil
	}
	return n.groups
}

// memoryDir returns the directory of the memory cgroup of all pods; "" if there is none.
func (n podCgroups) memoryDir() string {
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

// warning returns the limits that cannot be enforced, for the node status (rule ns-11);
// "" if all can.
func (n podCgroups) warning() string {
	if n.groups == nil {
		return "pods have no cgroups; limits are not enforced"
	}
	if missing := n.tree.Facts().Missing(); len(missing) > 0 {
		return "missing cgroup controllers, whose limits are not enforced: " + strings.Join(missing, ", ")
	}
	return ""
}

func (n podCgroups) components() []component {
	if n.groups == nil {
		return nil
	}
	return []component{n.groups.Run}
}

// newOOMWatcher returns the component that reports processes killed by the kernel (rules
// oom-1, oom-2). Where the kernel log is not readable, the cgroups of pods are; without
// both nothing is reported.
func newOOMWatcher(b base, n podCgroups) (component, error) {
	kmsg, err := b.userNamespace.kernelLog(oom.OpenKmsg, b.logger)
	if err != nil {
		return nil, err
	}
	if kmsg == nil && n.groups == nil {
		return func(ctx context.Context) error { <-ctx.Done(); return nil }, nil
	}
	cfg := oom.Config{
		Kmsg: kmsg, Node: b.nodeRef, Record: b.record, Logger: b.logger,
		Handle: func(k oom.Kill) {
			b.metrics.OOMKill(k)
			b.logger.Info("Process killed by the kernel, out of memory", "kill", k.String())
		},
	}
	if n.groups != nil {
		cfg.Cgroups = n.groups
	}
	w, err := oom.New(cfg)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context) error {
		if err := w.Run(ctx); err != nil {
			b.logger.Warn("Failed to watch for out-of-memory kills; they are not reported", "err", err)
		}
		<-ctx.Done()
		return nil
	}, nil
}
