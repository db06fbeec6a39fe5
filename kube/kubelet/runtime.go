package kubelet

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

// A podRuntime runs pods on CRI services.
type podRuntime struct {
	*cri.Runtime
	facts podconfig.Node
	ids   *userns.Allocator // of user namespaces; nil: pods have none
}

// A listed runtime returns PLEG's pods, for components that list periodically: they need no calls
// of their own, and get the same pods as the agent.
type listed struct {
	podRuntime
	table *podworker.Table
}

func (r listed) Pods(ctx context.Context) ([]*runtime.Pod, error) {
	if pods, ok := r.table.Listed(); ok {
		return pods, nil
	}
	return r.podRuntime.Pods(ctx)
}

type runtimeDeps struct {
	services services
	cgroups  podCgroups
	managers *resourceManagers // nil: there are none
	volumes  *volumes
	objects  cri.Objects // nil: there are none
	cluster  *cluster
	hostIPs  func() []string
	synced   func(cri.SyncInfo)
}

// newRuntime constructs the pod runtime.
func newRuntime(ctx context.Context, b base, d runtimeDeps) (r podRuntime, err error) {
	facts, err := cri.ReadFacts(os.DirFS("/"))
	if err != nil {
		return r, fmt.Errorf("read facts of the machine: %w", err)
	}
	r.facts = configuredFacts(facts, b.k, d.cgroups.allocatable)
	keyring, err := newKeyring(b)
	if err != nil {
		return r, err
	}
	if r.ids, err = newUserNamespaces(ctx, b, d.services.Processes, subIDSource{user.Lookup, os.DirFS("/"), runGetsubids}); err != nil {
		return r, err
	}
	cfg := cri.Config{
		Name: d.services.Name, Runtime: d.services.Service, Images: d.services.Images,
		Node:  cri.Node{IPs: d.hostIPs, Facts: r.facts, Allocatable: d.cgroups.allocatable, DNS: dnsOf(b.k), UnsafeSysctls: b.k.AllowedUnsafeSysctls},
		Dirs:  cri.Dirs{PodLogs: b.k.PodLogsDir, Root: b.cfg.RootDir, ContainerLogs: containerLogs(b.cfg.Host.Manage, d.services.Processes)},
		Calls: cri.CallConfig{Timeout: b.k.RuntimeRequestTimeout.Duration, Streams: new(streaming.Client)},
		Pulls: cri.PullConfig{Keyring: keyring}, Providers: cri.Providers{Ledger: d.services.ledger, Objects: d.objects, Volumes: d.volumes},
		Record: b.record, Hooks: b.metrics.remote.Runtime().Join(cri.Hooks{Synced: d.synced}), Logger: b.logger,
	}
	if r.ids != nil {
		cfg.Providers.UserNamespaces = r.ids
	}
	cfg.Containers.Backoff, cfg.Pulls.Config = backoffOf(b.k.CrashLoopBackOff), pullsOf(b.k, b.metrics.remote.Images())
	cfg.Pulls.Dir = filepath.Join(b.cfg.RootDir, "image_manager")
	for _, records := range []string{"pulling", "pulled"} { // which others look for once the kubelet runs
		if err = os.MkdirAll(filepath.Join(cfg.Pulls.Dir, records), 0o700); err != nil {
			return r, fmt.Errorf("directory of pull records: %w", err)
		}
	}
	if groups := d.cgroups.groups; groups != nil {
		cfg.Providers.Cgroups = groups
	}
	if d.managers != nil {
		cfg.Providers.Managers = d.managers.Managers
	}
	if d.cluster != nil {
		cfg.Providers.RuntimeClass = d.cluster.objects.RuntimeClass
	}
	if err := compose.Apply(b.cfg.Adjust, "CRI", &cfg); err != nil {
		return r, err
	}
	if err := cfg.Node.DNS.CheckLimits(cri.ReadResolvConf(cfg.Node.DNS)); err != nil { // pods run with it (rule dn-9)
		b.record(runtime.Event{Object: b.nodeRef, Type: v1.EventTypeWarning, Reason: podconfig.ReasonCheckLimits, Message: err.Error()})
		b.cfg.Notify(fmt.Sprintf("%s: %v", podconfig.ReasonCheckLimits, err))
	}
	r.Runtime, err = cri.New(cfg)
	return r, err
}

// dnsOf returns the configuration of resolv.conf files. An empty resolvConf means no name
// servers (rule dn-4). As in the kubelet a file that does not exist is an error, also the
// default one, except on Windows.
func dnsOf(k *kubeletconfig.KubeletConfiguration) cri.DNS {
	file := deref(k.ResolverConfig)
	if k.ResolverConfig == nil && goruntime.GOOS != "windows" {
		file = "/etc/resolv.conf"
	}
	return cri.DNS{
		ResolvConf: file, NoResolvConf: k.ResolverConfig != nil && *k.ResolverConfig == "",
		ClusterDNS: k.ClusterDNS, ClusterDomain: k.ClusterDomain,
	}
}

func backoffOf(k kubeletconfig.CrashLoopBackOffConfig) plan.BackoffConfig {
	if k.MaxContainerRestartPeriod == nil {
		return plan.BackoffConfig{}
	}
	return plan.BackoffConfig{Max: k.MaxContainerRestartPeriod.Duration}
}

func pullsOf(k *kubeletconfig.KubeletConfiguration, hooks images.Hooks) images.Config {
	cfg := images.Config{
		Hooks: hooks,
		QPS:   float64(deref(k.RegistryPullQPS)), Burst: int(k.RegistryBurst),
		Verify: images.VerifyPolicy(k.ImagePullCredentialsVerificationPolicy), VerifyAllowlist: k.PreloadedImagesVerificationAllowlist,
	}
	if cfg.QPS == 0 {
		cfg.QPS = -1 // no limit
	}
	parallel := deref(k.MaxParallelImagePulls)
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

// newUserNamespaces returns the allocator of IDs for pods with hostUsers: false; nil where
// there are no user namespaces.
func newUserNamespaces(ctx context.Context, b base, processes bool, source subIDSource) (*userns.Allocator, error) {
	perPod := int64(0)
	if b.k.UserNamespaces != nil {
		perPod = deref(b.k.UserNamespaces.IDsPerPod)
	}
	if processes || goruntime.GOOS != "linux" {
		return nil, nil
	}
	hostIDs, err := source.podIDs(ctx)
	if err != nil {
		return nil, fmt.Errorf("user namespaces: %w", err)
	}
	ids, err := userns.New(userns.Config{RootDir: b.cfg.RootDir, Range: hostIDs, PerPod: uint32(perPod), MaxPods: int(maxPods(b.cfg))})
	if err != nil {
		return nil, fmt.Errorf("userNamespaces: %w", err)
	}
	return ids, ids.Load()
}

// configuredFacts adds the Configuration to the facts of the machine (rules cm-32 to
// cm-42).
func configuredFacts(facts podconfig.Node, k *kubeletconfig.KubeletConfiguration, allocatable v1.ResourceList) podconfig.Node {
	facts.NoCPUQuota = !*k.CPUCFSQuota
	facts.CPUPeriod = k.CPUCFSQuotaPeriod.Duration
	facts.Swap.Limited = k.MemorySwap.SwapBehavior == "LimitedSwap"
	facts.Security.SeccompDefault = deref(k.SeccompDefault)
	facts.SingleProcessOOMKill = deref(k.SingleProcessOOMKill)
	facts.MemoryQoS.Enabled = config.Enabled(k, "MemoryQoS")
	facts.MemoryQoS.ThrottlingFactor = deref(k.MemoryThrottlingFactor)
	if k.MemoryReservationPolicy == "TieredReservation" {
		facts.MemoryQoS.Reserve = podconfig.ReserveTiered
	}
	facts.AllocatableMemory = allocatable.Memory().Value()
	return facts
}

// newLogRotator constructs the rotator of container logs.
func newLogRotator(b base, rt podRuntime) (*logrotate.Rotator, error) {
	k, cfg := b.k, logrotate.Config{Runtime: listed{rt, b.pods.Table}, Logger: b.logger}
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
	if err := compose.Apply(b.cfg.Adjust, "Logs", &cfg); err != nil {
		return nil, err
	}
	return logrotate.New(cfg)
}

// podLogDir returns the directory of the logs of a pod.
func podLogDir(b base, namespace, name string, uid types.UID) string {
	return filepath.Join(b.k.PodLogsDir, namespace+"_"+name+"_"+string(uid))
}

// containerLogs returns the directory of links to the logs of containers, which log collectors
// read; empty without permission to change the machine, and for processes, which the
// collectors of containers do not read.
func containerLogs(manage, processes bool) string {
	if !manage || processes {
		return ""
	}
	return "/var/log/containers"
}
