package machine

import (
	"context"
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	goruntime "runtime"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
	kubeletconfig "k8s.io/kubelet/config/v1beta1"

	"github.com/kubeparts/kubeparts/compose"
	"github.com/kubeparts/kubeparts/kube/kubelet/config"
	"github.com/kubeparts/kubeparts/kube/kubelet/internal/stores"
	"github.com/kubeparts/kubeparts/kube/kubelet/internal/volumes"
	"github.com/kubeparts/kubeparts/podworker"
	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/runtime/cri"
	"github.com/kubeparts/kubeparts/runtime/cri/images"
	"github.com/kubeparts/kubeparts/runtime/cri/logrotate"
	"github.com/kubeparts/kubeparts/runtime/cri/plan"
	"github.com/kubeparts/kubeparts/runtime/cri/podconfig"
	"github.com/kubeparts/kubeparts/runtime/cri/streaming"
	"github.com/kubeparts/kubeparts/runtime/cri/userns"
)

// A PodRuntime runs pods on CRI services.
type PodRuntime struct {
	*cri.Runtime
	Facts podconfig.Node
	Ids   *userns.Allocator // of user namespaces; nil: pods have none
}

// A Listed runtime returns PLEG's pods, for components that list periodically: they need no calls
// of their own, and get the same pods as the agent.
type Listed struct {
	PodRuntime
	Table *podworker.Table
}

func (r Listed) Pods(ctx context.Context) ([]*runtime.Pod, error) {
	if pods, ok := r.Table.Listed(); ok {
		return pods, nil
	}
	return r.PodRuntime.Pods(ctx)
}

type runtimeDeps struct {
	services Services
	cgroups  PodCgroups
	managers *ResourceManagers // nil: there are none
	volumes  *volumes.Volumes
	objects  cri.Objects // nil: there are none
	cluster  *stores.Cluster
	hostIPs  func() []string
	synced   func(cri.SyncInfo)
}

// newRuntime constructs the pod runtime.
func newRuntime(ctx context.Context, b stores.Base, d runtimeDeps) (r PodRuntime, err error) {
	facts, err := cri.ReadFacts(os.DirFS("/"))
	if err != nil {
		return r, fmt.Errorf("read facts of the machine: %w", err)
	}
	r.Facts = ConfiguredFacts(facts, b.Configuration, d.cgroups.Allocatable)
	keyring, err := newKeyring(b)
	if err != nil {
		return r, err
	}
	if r.Ids, err = NewUserNamespaces(ctx, b, d.services.Processes, SubIDSource{user.Lookup, os.DirFS("/"), runGetsubids}); err != nil {
		return r, err
	}
	cfg := cri.Config{
		Name: d.services.Name, Runtime: d.services.Service, Images: d.services.Images,
		Node:  cri.Node{IPs: d.hostIPs, Facts: r.Facts, Allocatable: d.cgroups.Allocatable, DNS: DnsOf(b.Configuration), UnsafeSysctls: b.Configuration.AllowedUnsafeSysctls},
		Dirs:  cri.Dirs{PodLogs: b.Configuration.PodLogsDir, Root: b.Config.RootDir, ContainerLogs: ContainerLogs(b.Config.Host.Manage, d.services.Processes)},
		Calls: cri.CallConfig{Timeout: b.Configuration.RuntimeRequestTimeout.Duration, Streams: new(streaming.Client)},
		Pulls: cri.PullConfig{Keyring: keyring}, Providers: cri.Providers{Ledger: d.services.Ledger, Objects: d.objects, Volumes: d.volumes},
		Record: b.Record, Hooks: b.Metrics.Remote.Runtime().Join(cri.Hooks{Synced: d.synced}), Logger: b.Logger,
	}
	if r.Ids != nil {
		cfg.Providers.UserNamespaces = r.Ids
	}
	cfg.Containers.Backoff, cfg.Pulls.Config = BackoffOf(b.Configuration.CrashLoopBackOff), PullsOf(b.Configuration, b.Metrics.Remote.Images())
	cfg.Pulls.Dir = filepath.Join(b.Config.RootDir, "image_manager")
	for _, records := range []string{"pulling", "pulled"} { // which others look for once the kubelet runs
		if err = os.MkdirAll(filepath.Join(cfg.Pulls.Dir, records), 0o700); err != nil {
			return r, fmt.Errorf("directory of pull records: %w", err)
		}
	}
	if groups := d.cgroups.Groups; groups != nil {
		cfg.Providers.Cgroups = groups
	}
	if d.managers != nil {
		cfg.Providers.Managers = d.managers.Managers
	}
	if d.cluster != nil {
		cfg.Providers.RuntimeClass = d.cluster.Objects.RuntimeClass
	}
	if err := compose.Apply(b.Config.Adjust, "CRI", &cfg); err != nil {
		return r, err
	}
	if err := cfg.Node.DNS.CheckLimits(cri.ReadResolvConf(cfg.Node.DNS)); err != nil { // pods run with it (rule dn-9)
		b.Record(runtime.Event{Object: b.NodeRef, Type: v1.EventTypeWarning, Reason: podconfig.ReasonCheckLimits, Message: err.Error()})
		b.Config.Notify(fmt.Sprintf("%s: %v", podconfig.ReasonCheckLimits, err))
	}
	r.Runtime, err = cri.New(cfg)
	return r, err
}

// DnsOf returns the configuration of resolv.conf files. An empty resolvConf means no name
// servers (rule dn-4). As in the kubelet a file that does not exist is an error, also the
// default one, except on Windows.
func DnsOf(k *kubeletconfig.KubeletConfiguration) cri.DNS {
	file := stores.Deref(k.ResolverConfig)
	if k.ResolverConfig == nil && goruntime.GOOS != "windows" {
		file = "/etc/resolv.conf"
	}
	return cri.DNS{
		ResolvConf: file, NoResolvConf: k.ResolverConfig != nil && *k.ResolverConfig == "",
		ClusterDNS: k.ClusterDNS, ClusterDomain: k.ClusterDomain,
	}
}

func BackoffOf(k kubeletconfig.CrashLoopBackOffConfig) plan.BackoffConfig {
	if k.MaxContainerRestartPeriod == nil {
		return plan.BackoffConfig{}
	}
	return plan.BackoffConfig{Max: k.MaxContainerRestartPeriod.Duration}
}

func PullsOf(k *kubeletconfig.KubeletConfiguration, hooks images.Hooks) images.Config {
	cfg := images.Config{
		Hooks: hooks,
		QPS:   float64(stores.Deref(k.RegistryPullQPS)), Burst: int(k.RegistryBurst),
		Verify: images.VerifyPolicy(k.ImagePullCredentialsVerificationPolicy), VerifyAllowlist: k.PreloadedImagesVerificationAllowlist,
	}
	if cfg.QPS == 0 {
		cfg.QPS = -1 // no limit
	}
	parallel := stores.Deref(k.MaxParallelImagePulls)
	serial := parallel <= 1
	if k.SerializeImagePulls != nil {
		serial = *k.SerializeImagePulls
	}
	switch {
	case serial:
		cfg.MaxParallel = 1
	case parallel > 0:
		cfg.MaxParallel = int(parallel)
	default:
		cfg.MaxParallel = images.Unlimited
	}
	return cfg
}

// NewUserNamespaces returns the allocator of IDs for pods with hostUsers: false; nil where
// there are no user namespaces.
func NewUserNamespaces(ctx context.Context, b stores.Base, processes bool, source SubIDSource) (*userns.Allocator, error) {
	perPod := int64(0)
	if b.Configuration.UserNamespaces != nil {
		perPod = stores.Deref(b.Configuration.UserNamespaces.IDsPerPod)
	}
	if processes || goruntime.GOOS != "linux" {
		return nil, nil
	}
	hostIDs, err := source.PodIDs(ctx)
	if err != nil {
		return nil, fmt.Errorf("user namespaces: %w", err)
	}
	ids, err := userns.New(userns.Config{RootDir: b.Config.RootDir, Range: hostIDs, PerPod: uint32(perPod), MaxPods: int(stores.MaxPods(b.Config))})
	if err != nil {
		return nil, fmt.Errorf("userNamespaces: %w", err)
	}
	return ids, ids.Load()
}

// ConfiguredFacts adds the Configuration to the facts of the machine (rules cm-32 to
// cm-42).
func ConfiguredFacts(facts podconfig.Node, k *kubeletconfig.KubeletConfiguration, allocatable v1.ResourceList) podconfig.Node {
	facts.NoCPUQuota = !*k.CPUCFSQuota
	facts.CPUPeriod = k.CPUCFSQuotaPeriod.Duration
	facts.Swap.Limited = k.MemorySwap.SwapBehavior == "LimitedSwap"
	facts.Security.SeccompDefault = stores.Deref(k.SeccompDefault)
	facts.SingleProcessOOMKill = stores.Deref(k.SingleProcessOOMKill)
	facts.MemoryQoS.Enabled = config.Enabled(k, "MemoryQoS")
	facts.MemoryQoS.ThrottlingFactor = stores.Deref(k.MemoryThrottlingFactor)
	if k.MemoryReservationPolicy == "TieredReservation" {
		facts.MemoryQoS.Reserve = podconfig.ReserveTiered
	}
	facts.AllocatableMemory = allocatable.Memory().Value()
	return facts
}

// NewLogRotator constructs the rotator of container logs.
func NewLogRotator(b stores.Base, rt PodRuntime) (*logrotate.Rotator, error) {
	k, cfg := b.Configuration, logrotate.Config{Runtime: Listed{rt, b.Pods.Table}, Logger: b.Logger}
	if k.ContainerLogMaxSize != "" {
		size, err := resource.ParseQuantity(k.ContainerLogMaxSize)
		if err != nil {
			return nil, fmt.Errorf("containerLogMaxSize %q: %w", k.ContainerLogMaxSize, err)
		}
		cfg.MaxSize = size.Value()
		if cfg.MaxSize == 0 {
			cfg.MaxSize = 1 // every log that has a line is rotated; a negative size disables it
		}
	}
	if k.ContainerLogMaxFiles != nil {
		cfg.MaxFiles = int(*k.ContainerLogMaxFiles)
	}
	if k.ContainerLogMaxWorkers != nil {
		cfg.Workers = int(*k.ContainerLogMaxWorkers)
	}
	if k.ContainerLogMonitorInterval != nil {
		cfg.Period = k.ContainerLogMonitorInterval.Duration
	}
	if err := compose.Apply(b.Config.Adjust, "Logs", &cfg); err != nil {
		return nil, err
	}
	return logrotate.New(cfg)
}

// podLogDir returns the directory of the logs of a pod.
func podLogDir(b stores.Base, namespace, name string, uid types.UID) string {
	return filepath.Join(b.Configuration.PodLogsDir, namespace+"_"+name+"_"+string(uid))
}

// ContainerLogs returns the directory of links to the logs of containers, which log collectors
// read; empty without permission to change the machine, and for processes, which the
// collectors of containers do not read.
func ContainerLogs(manage, processes bool) string {
	if !manage || processes {
		return ""
	}
	return "/var/log/containers"
}
