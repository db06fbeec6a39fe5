package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"maps"
	"math"
	"net/http"
	"os"
	"path/filepath"
	goruntime "runtime"
	"slices"
	"strconv"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
	internalapi "k8s.io/cri-api/pkg/apis"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	kubeletconfig "k8s.io/kubelet/config/v1beta1"
	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"github.com/kubeparts/kubeparts/allocation"
	"github.com/kubeparts/kubeparts/cm"
	"github.com/kubeparts/kubeparts/cm/cgroups"
	"github.com/kubeparts/kubeparts/cm/cgroups/host"
	"github.com/kubeparts/kubeparts/cm/oom"
	"github.com/kubeparts/kubeparts/cm/stats"
	"github.com/kubeparts/kubeparts/eviction"
	"github.com/kubeparts/kubeparts/internal/quiet"
	"github.com/kubeparts/kubeparts/kube/node"
	"github.com/kubeparts/kubeparts/podworker"
	"github.com/kubeparts/kubeparts/runtime/cri"
	"github.com/kubeparts/kubeparts/runtime/cri/podconfig"
)

// declareCgroups declares the flags of the kubelet that say what pods get of the
// node.
func declareCgroups(fs *flag.FlagSet, o *options) {
	k := &o.kubelet
	fs.BoolVar(k.CgroupsPerQOS, "cgroups-per-qos", *k.CgroupsPerQOS, "make a cgroup for each pod (needs root and a CRI runtime)")
	fs.StringVar(&k.CgroupDriver, "cgroup-driver", k.CgroupDriver, "`cgroupfs or systemd` (default: what the runtime says, else cgroupfs)")
	// A kubelet has the root, so that what it left is taken over. An agent that
	// somebody tries beside one must not take its pods for its own.
	root := k.CgroupRoot
	if root == "" && !o.configured() {
		root = "/kubeparts"
	}
	fs.Func("cpu-weights", "`logarithmic or linear`: how requests become weights of cgroup v2; linear with runc before 1.3.2 and crun before 1.23, whose containers get theirs so", func(s string) (err error) {
		o.weights, err = cgroups.ParseWeightFormula(s)
		return err
	})
	fs.StringVar(&k.CgroupRoot, "cgroup-root", root, "`cgroup` that holds those of pods; with --config the root")
	fs.Func("system-reserved", "`resources` for daemons of the system: cpu=500m,memory=1Gi,pid=1000", pairs(&k.SystemReserved, "="))
	fs.Func("kube-reserved", "`resources` for this agent and the runtime", pairs(&k.KubeReserved, "="))
	fs.StringVar(&k.SystemReservedCgroup, "system-reserved-cgroup", k.SystemReservedCgroup, "`cgroup` that gets --system-reserved as its limit")
	fs.StringVar(&k.KubeReservedCgroup, "kube-reserved-cgroup", k.KubeReservedCgroup, "`cgroup` that gets --kube-reserved as its limit")
	fs.StringVar(&k.ReservedSystemCPUs, "reserved-cpus", k.ReservedSystemCPUs, "`CPUs` that pods can't have, such as 0-1; instead of those of the two above")
	fs.Func("enforce-node-allocatable", "`keys` of what gets limits: none, pods, system-reserved, kube-reserved (default pods)", func(s string) error {
		k.EnforceNodeAllocatable = strings.Split(s, ",")
		return nil
	})
	fs.Int64Var(k.PodPidsLimit, "pod-max-pids", *k.PodPidsLimit, "`processes` that a pod may have; -1: any number")
	fs.BoolVar(k.CPUCFSQuota, "cpu-cfs-quota", *k.CPUCFSQuota, "keep limits on CPU")
	fs.BoolVar(k.FailSwapOn, "fail-swap-on", *k.FailSwapOn, "don't start on a machine that swaps")
	fs.Func("max-pods", "`pods` that this node takes (default 110)", func(s string) error {
		n, err := strconv.ParseInt(s, 10, 32)
		k.MaxPods = int32(n)
		return err
	})
}

// A podNode is what there is of the node for pods, and their cgroups.
type podNode struct {
	capacity, allocatable v1.ResourceList

	// groups are nil where pods have none: then nothing but admission keeps them
	// to what they ask for.
	groups *cm.Manager
	tree   *host.Tree
}

// readNode tells what pods can have, and gets their cgroups ready on a CRI runtime
// whose containers we may limit.
// exclusiveCPUs reports whether a container of a pod has CPUs of its own; it is not
// called before the agent runs.
func (a *assembly) readNode(ctx context.Context, service internalapi.RuntimeService, exclusiveCPUs func(*v1.Pod) bool) (*podNode, error) {
	k := a.opts.kubelet
	capacity, err := cm.ReadCapacity(os.DirFS("/"))
	if err != nil {
		return nil, err
	}
	if _, ok := capacity[v1.ResourceCPU]; !ok { // not Linux
		capacity[v1.ResourceCPU] = *resource.NewQuantity(int64(goruntime.NumCPU()), resource.DecimalSI)
	}
	if disk, err := stats.Statfs(a.opts.root); err == nil {
		capacity[v1.ResourceEphemeralStorage] = *resource.NewQuantity(int64(min(disk.Capacity, math.MaxInt64)), resource.BinarySI)
	}
	reserved, err := reservedOf(k, capacity)
	if err != nil {
		return nil, err
	}
	n := &podNode{capacity: capacity, allocatable: cm.Allocatable(capacity, reserved)}
	if err := cm.CheckReserved(capacity, reserved); err != nil {
		return nil, err
	}
	if service == nil || os.Geteuid() != 0 || !*k.CgroupsPerQOS {
		return n, nil
	}
	driver, err := driverOf(ctx, k.CgroupDriver, service, a.logger)
	if err != nil {
		return nil, err
	}
	if n.tree, err = host.New(host.Config{Driver: driver, Weight: a.opts.weights}); errors.Is(err, errors.ErrUnsupported) {
		return n, nil // not Linux
	} else if err != nil {
		return nil, fmt.Errorf("pods get no cgroups here (--cgroups-per-qos=false does without): %w", err)
	}
	if err := a.preflight(n.tree.Facts()); err != nil {
		return nil, err
	}
	root, err := cgroups.ParseRoot(k.CgroupRoot)
	if err != nil {
		return nil, fmt.Errorf("--cgroup-root: %w", err)
	}
	policy, err := policyOf(k, capacity)
	if err != nil {
		return nil, err
	}
	n.groups, err = cm.New(cm.Config{
		Tree: n.tree, Driver: driver, Root: root, Hooks: a.count.Cgroups(), Policy: policy, Capacity: capacity, Reserved: reserved,
		Enforce: k.EnforceNodeAllocatable, SystemReservedCgroup: k.SystemReservedCgroup, KubeReservedCgroup: k.KubeReservedCgroup,
		AgentCgroup: k.KubeletCgroups, SystemCgroup: k.SystemCgroups, ExclusiveCPUs: exclusiveCPUs,
		Node: a.nodeRef(), Record: a.record, Logger: a.logger,
	})
	if err != nil {
		return nil, err
	}
	return n, n.groups.Setup(ctx)
}

// driverOf is the runtime's driver, if it says, which is what counts.
func driverOf(ctx context.Context, configured string, service internalapi.RuntimeService, logger *slog.Logger) (cgroups.Driver, error) {
	answer, err := service.RuntimeConfig(quiet.Context(ctx, logger))
	if err == nil && answer.GetLinux() != nil {
		if answer.Linux.CgroupDriver == runtimeapi.CgroupDriver_CGROUPFS {
			return cgroups.Cgroupfs, nil
		}
		return cgroups.Systemd, nil
	}
	driver, err := cgroups.ParseDriver(cmp.Or(configured, string(cgroups.Cgroupfs)))
	if err != nil {
		return "", fmt.Errorf("--cgroup-driver: %w", err)
	}
	return driver, nil
}

// preflight looks at the machine (cm-29 … cm-31). The kernel is set as nodes have
// it only where somebody has configured a node.
func (a *assembly) preflight(facts cgroups.Facts) error {
	k := a.opts.kubelet
	if err := cm.CheckVersion(facts, *k.FailCgroupV1); err != nil {
		return err
	}
	if swaps, err := os.ReadFile("/proc/swaps"); err == nil && *k.FailSwapOn && cm.SwapOn(swaps) {
		return cm.ErrSwapOn
	}
	if !a.opts.configured() {
		return nil
	}
	err := cm.CheckTunables(os.DirFS("/"), cm.Tunables(), k.ProtectKernelDefaults, func(t cm.Tunable) error {
		return os.WriteFile(filepath.Join("/proc/sys", t.Name), []byte(t.Value), 0)
	})
	if err != nil && !k.ProtectKernelDefaults {
		a.logger.Warn("kernel parameters can't be set", "err", err)
		return nil
	}
	return err
}

func reservedOf(k kubeletconfig.KubeletConfiguration, capacity v1.ResourceList) (r cm.Reserved, err error) {
	if r.System, err = amounts("systemReserved", k.SystemReserved); err != nil {
		return r, err
	}
	if r.Kube, err = amounts("kubeReserved", k.KubeReserved); err != nil {
		return r, err
	}
	hard := eviction.Settings{Hard: k.EvictionHard}.WithDefaults(goruntime.GOOS, k.MergeDefaultEvictionSettings != nil && *k.MergeDefaultEvictionSettings).Hard
	if r.Eviction, err = cm.EvictionReserve(hard, capacity); err != nil {
		return r, err
	}
	return r.ReserveCPUs(k.ReservedSystemCPUs)
}

func amounts(field string, in map[string]string) (v1.ResourceList, error) {
	out := v1.ResourceList{}
	for name, text := range in {
		switch v1.ResourceName(name) {
		case v1.ResourceCPU, v1.ResourceMemory, v1.ResourceEphemeralStorage, cm.ResourcePID:
		default:
			return nil, fmt.Errorf("%s: %q can't be reserved; cpu, memory, ephemeral-storage and pid can", field, name)
		}
		q, err := resource.ParseQuantity(text)
		if err != nil || q.Sign() < 0 {
			return nil, fmt.Errorf("%s: %s: %q is no amount", field, name, text)
		}
		out[v1.ResourceName(name)] = q
	}
	return out, nil
}

func policyOf(k kubeletconfig.KubeletConfiguration, capacity v1.ResourceList) (cm.Policy, error) {
	p := cm.Policy{NoCPUQuota: !*k.CPUCFSQuota, CPUPeriod: k.CPUCFSQuotaPeriod.Duration, PodPids: *k.PodPidsLimit}
	for name := range capacity {
		if size, ok := strings.CutPrefix(string(name), v1.ResourceHugePagesPrefix); ok {
			if q, err := resource.ParseQuantity(size); err == nil {
				p.HugePageSizes = append(p.HugePageSizes, q.Value())
			}
		}
	}
	if k.FeatureGates["MemoryQoS"] && k.MemoryReservationPolicy == "TieredReservation" {
		p.Reserve = cm.ReserveTiered
	}
	for name, text := range k.QOSReserved {
		percent, err := strconv.ParseInt(strings.TrimSuffix(text, "%"), 10, 64)
		if err != nil {
			return p, fmt.Errorf("qosReserved: %s: %q is no percentage", name, text)
		}
		if p.QOSReserved == nil {
			p.QOSReserved = map[v1.ResourceName]int64{}
		}
		p.QOSReserved[v1.ResourceName(name)] = percent
	}
	return p, nil
}

// configured adds to the facts of the machine what is a matter of configuration
// (cm-32 … cm-42).
func configured(facts podconfig.Node, k kubeletconfig.KubeletConfiguration, n *podNode) podconfig.Node {
	facts.NoCPUQuota = !*k.CPUCFSQuota
	facts.CPUPeriod = k.CPUCFSQuotaPeriod.Duration
	facts.Swap.Limited = k.MemorySwap.SwapBehavior == "LimitedSwap"
	facts.SeccompDefault = deref(k.SeccompDefault)
	facts.SingleProcessOOMKill = k.SingleProcessOOMKill != nil && *k.SingleProcessOOMKill
	facts.MemoryQoS.Enabled = k.FeatureGates["MemoryQoS"]
	facts.MemoryQoS.ThrottlingFactor = *k.MemoryThrottlingFactor
	if k.MemoryReservationPolicy == "TieredReservation" {
		facts.MemoryQoS.Reserve = podconfig.ReserveTiered
	}
	facts.AllocatableMemory = n.allocatable.Memory().Value()
	return facts
}

// machine is what the node's status says of it (cm-22); process IDs are no resource of
// pods.
func (n *podNode) machine(maxPods int32) node.Machine {
	capacity := maps.Clone(n.capacity)
	delete(capacity, cm.ResourcePID)
	return node.Machine{
		Capacity:    func() (v1.ResourceList, error) { return capacity, nil },
		Allocatable: func() (v1.ResourceList, error) { return n.allocatable, nil },
		MaxPods:     int64(maxPods),
	}
}

// intoGroups makes the runtime put pods into their cgroups.
func (n *podNode) intoGroups(cfg *cri.Config) {
	cfg.Node.Allocatable = n.allocatable
	if n.groups == nil {
		return
	}
	cfg.CgroupParent = n.groups.CgroupParent
	cfg.ResizeCgroup = func(ctx context.Context, pod *v1.Pod, s allocation.Step) error {
		return n.groups.Resize(ctx, pod, s.Resource, s.After)
	}
}

// forPods is what the pipeline calls; nil where pods have no cgroups.
func (n *podNode) forPods() podworker.Cgroups {
	if n.groups == nil {
		return nil
	}
	return n.groups
}

// Run keeps the cgroups as they should be until ctx ends.
func (n *podNode) Run(ctx context.Context) error {
	if n.groups == nil {
		<-ctx.Done()
		return nil
	}
	return n.groups.Run(ctx)
}

// collector makes summaries of what the node and its pods use.
func (a *assembly) collector(rt connected, vols *volumes) (*stats.Collector, error) {
	opts, n := a.opts, rt.node
	cfg := stats.Config{
		NodeName: opts.nodeName, Runtime: rt, Root: os.DirFS("/"), NodeDir: opts.root, Logger: a.logger,
		Volumes: func(uid types.UID) []statsapi.VolumeStats {
			own, others := vols.VolumeStats(uid)
			return append(own, others...)
		},
		Ephemeral: func(uid types.UID, volume string) bool { // st-10
			own, _ := vols.VolumeStats(uid)
			return slices.ContainsFunc(own, func(v statsapi.VolumeStats) bool { return v.Name == volume })
		},
		LogDir: func(namespace, name string, uid types.UID) string {
			return filepath.Join(opts.logs, namespace+"_"+name+"_"+string(uid))
		},
		HostsFile:   func(uid types.UID) string { return filepath.Join(opts.root, "pods", string(uid), "etc-hosts") },
		MessagesDir: func(uid types.UID) string { return filepath.Join(opts.root, "pods", string(uid), "containers") },
		HostNetwork: func(uid types.UID) bool {
			pod := a.pods.pod(uid)
			return pod != nil && pod.Spec.HostNetwork
		},
	}
	if n.groups != nil {
		cfg.Cgroups = n.tree
		cfg.System = map[string]cgroups.Name{statsapi.SystemContainerPods: n.groups.PodsRoot()}
		for name, path := range map[string]string{statsapi.SystemContainerKubelet: opts.kubelet.KubeletCgroups, statsapi.SystemContainerMisc: opts.kubelet.SystemCgroups} {
			if group := cgroups.ParsePath(path, n.tree.Facts().Driver); len(group) > 0 { // of a service of systemd's nothing is told
				cfg.System[name] = group
			}
		}
		cfg.PodCgroup = a.podCgroup(n.groups)
	}
	return stats.New(cfg)
}

// podCgroup names the cgroup of a pod that is wanted.
func (a *assembly) podCgroup(groups *cm.Manager) func(types.UID) (cgroups.Name, bool) {
	return func(uid types.UID) (cgroups.Name, bool) {
		if pod := a.pods.pod(uid); pod != nil {
			return groups.PodName(pod), true
		}
		return nil, false
	}
}

// watchOOM tells of processes that the kernel kills for memory (oom-1, oom-2). On a
// machine whose log is not ours to read the pods' cgroups are looked at; without
// those nobody is told, which is no reason not to run.
func (a *assembly) watchOOM(n *podNode) part {
	return func(ctx context.Context) error {
		cfg := oom.Config{
			Kmsg: oom.OpenKmsg, Node: a.nodeRef(), Record: a.record, Logger: a.logger,
			Handle: func(k oom.Kill) { a.count.OOMKill(k); a.logger.Info("out of memory", "kill", k.String()) },
		}
		if n.groups != nil {
			cfg.Counters = n.groups.OOMKills
		}
		w, err := oom.New(cfg)
		if err != nil {
			return err
		}
		if err := w.Run(ctx); err != nil {
			a.logger.Warn("nobody is told of processes that the kernel kills", "err", err)
		}
		<-ctx.Done()
		return nil
	}
}

// summaryPage answers /stats/summary, in full or with only_cpu_and_memory=true
// (st-3, st-15).
func summaryPage(c *stats.Collector) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		only, _ := strconv.ParseBool(r.URL.Query().Get("only_cpu_and_memory"))
		summary, err := (*statsapi.Summary)(nil), error(nil)
		if only {
			summary, err = c.CPUAndMemory(r.Context())
		} else {
			summary, err = c.Summary(r.Context(), false)
		}
		if summary == nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		enc := json.NewEncoder(w)
		enc.SetIndent("", "  ")
		_ = enc.Encode(summary) // fails only if the client has gone
	}
}
