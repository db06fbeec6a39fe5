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

	"github.com/kubeparts/kubeparts/cm/cgroups"
	"github.com/kubeparts/kubeparts/compose"
	"github.com/kubeparts/kubeparts/kube/kubelet/config"
	"github.com/kubeparts/kubeparts/kube/kubelet/internal/stores"
	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/runtime/cri"
	"github.com/kubeparts/kubeparts/runtime/cri/images"
	"github.com/kubeparts/kubeparts/runtime/cri/logrotate"
	"github.com/kubeparts/kubeparts/runtime/cri/plan"
	"github.com/kubeparts/kubeparts/runtime/cri/podconfig"
	"github.com/kubeparts/kubeparts/runtime/cri/streaming"
	"github.com/kubeparts/kubeparts/runtime/cri/userns"
)

// newCRI constructs m.Runtime on CRI services and returns its engine.
func (m *Machine) newCRI(ctx context.Context, s *stores.Stores, services Services) (*cri.Runtime, error) {
	m.Runtime = PodRuntime{Name: services.Name, Display: services.Display, Ledger: services.Ledger}
	m.Runtime.Version = func(ctx context.Context) (string, error) {
		v, err := services.Service.Version(ctx, "")
		return v.GetRuntimeVersion(), err
	}
	var err error
	if m.Runtime.IDs, err = newUserNamespaces(ctx, s.Base, services.Processes, subIDSource{user.Lookup, os.DirFS("/"), runGetsubids}); err != nil {
		return nil, err
	}
	cfg := cri.Config{Runtime: services.Service, Images: services.Images}
	cfg.Calls.Streams = new(streaming.Client)
	cfg.Providers.Ledger = services.Ledger
	if m.Runtime.IDs != nil {
		cfg.Providers.UserNamespaces = m.Runtime.IDs
	}
	if groups := m.Cgroups.Groups; groups != nil {
		cfg.Providers.Cgroups = groups
	}
	if m.Managers != nil {
		cfg.Providers.Managers = m.Managers.Managers
	}
	if !services.Processes {
		cfg.Dirs.ContainerLogs = containerLogs(s.Config.Host.Manage)
	}
	if err := m.complete(s, &cfg); err != nil {
		return nil, err
	}
	engine, err := cri.New(cfg)
	if err != nil {
		return nil, err
	}
	m.Runtime.Runtime, m.Runtime.Admitter = engine, engine
	return engine, nil
}

// complete adds to the configuration of the engine of m.Runtime what does not depend on the kind of the runtime.
func (m *Machine) complete(s *stores.Stores, cfg *cri.Config) error {
	b := s.Base
	facts, err := cri.ReadFacts(os.DirFS("/"))
	if err != nil {
		return fmt.Errorf("read facts of the machine: %w", err)
	}
	allocatable := m.Cgroups.Allocatable
	m.Runtime.Facts = configuredFacts(facts, b.Configuration, allocatable)
	keyring, err := newKeyring(b)
	if err != nil {
		return err
	}
	cfg.Name = m.Runtime.Name
	cfg.Node = cri.Node{IPs: s.HostIPs, Facts: m.Runtime.Facts, Allocatable: allocatable, DNS: dnsOf(b.Configuration), UnsafeSysctls: b.Configuration.AllowedUnsafeSysctls}
	cfg.Dirs.PodLogs, cfg.Dirs.Root = b.Configuration.PodLogsDir, b.Config.RootDir
	cfg.Calls.Timeout = b.Configuration.RuntimeRequestTimeout.Duration
	cfg.Providers.Objects, cfg.Providers.Volumes = stores.ObjectsOf(s.Cluster, s.Local), m.Volumes
	cfg.Record, cfg.Logger = b.Record, b.Logger
	cfg.Hooks = b.Metrics.Remote.Runtime().Join(cri.Hooks{Synced: s.History.Synced})
	cfg.Containers.Backoff, cfg.Pulls.Config = backoffOf(b.Configuration.CrashLoopBackOff), pullsOf(b.Configuration, b.Metrics.Remote.Images())
	cfg.Pulls.Keyring = keyring
	cfg.Pulls.Dir = filepath.Join(b.Config.RootDir, "image_manager")
	for _, records := range []string{"pulling", "pulled"} { // which others look for once the kubelet runs
		if err = os.MkdirAll(filepath.Join(cfg.Pulls.Dir, records), 0o700); err != nil {
			return fmt.Errorf("directory of pull records: %w", err)
		}
	}
	if s.Cluster != nil {
		cfg.Providers.RuntimeClass = s.Cluster.Objects.RuntimeClass
	}
	if err := compose.Apply(b.Config.Adjust, cfg); err != nil {
		return err
	}
	if err := cfg.Node.DNS.CheckLimits(cri.ReadResolvConf(cfg.Node.DNS)); err != nil { // pods run with it (rule dn-9)
		b.Record(runtime.Event{Object: b.NodeRef, Type: v1.EventTypeWarning, Reason: podconfig.ReasonCheckLimits, Message: err.Error()})
		b.Config.Notify(fmt.Sprintf("%s: %v", podconfig.ReasonCheckLimits, err))
	}
	return nil
}

// dnsOf returns the configuration of resolv.conf files. An empty resolvConf means no name
// servers (rule dn-4). As in the kubelet a file that does not exist is an error, also the
// default one, except on Windows.
func dnsOf(k *kubeletconfig.KubeletConfiguration) cri.DNS {
	file := stores.Deref(k.ResolverConfig)
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

// newUserNamespaces returns the allocator of IDs for pods with hostUsers: false; nil where
// there are no user namespaces.
func newUserNamespaces(ctx context.Context, b stores.Base, processes bool, source subIDSource) (*userns.Allocator, error) {
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

// configuredFacts adds the Configuration to the facts of the machine (rules cm-32 to
// cm-42).
func configuredFacts(facts podconfig.Node, k *kubeletconfig.KubeletConfiguration, allocatable v1.ResourceList) podconfig.Node {
	facts.NoCPUQuota = !*k.CPUCFSQuota
	facts.CPUPeriod = k.CPUCFSQuotaPeriod.Duration
	facts.Swap.Limited = k.MemorySwap.SwapBehavior == "LimitedSwap"
	facts.Security.SeccompDefault = stores.Deref(k.SeccompDefault)
	facts.SingleProcessOOMKill = stores.Deref(k.SingleProcessOOMKill)
	facts.MemoryQoS.Enabled = config.Enabled(k, "MemoryQoS")
	facts.MemoryQoS.ThrottlingFactor = stores.Deref(k.MemoryThrottlingFactor)
	if k.MemoryReservationPolicy == "TieredReservation" {
		facts.MemoryQoS.Reserve = cgroups.ReserveTiered
	}
	facts.AllocatableMemory = allocatable.Memory().Value()
	return facts
}

// newLogRotator constructs the rotator of container logs.
func newLogRotator(b stores.Base, rt PodRuntime) (*logrotate.Rotator, error) {
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
	if err := compose.Apply(b.Config.Adjust, &cfg); err != nil {
		return nil, err
	}
	return logrotate.New(cfg)
}

// podLogDir returns the directory of the logs of a pod.
func podLogDir(b stores.Base, namespace, name string, uid types.UID) string {
	return filepath.Join(b.Configuration.PodLogsDir, namespace+"_"+name+"_"+string(uid))
}

// containerLogs returns the directory of links to the logs of containers, which log collectors
// read; empty without permission to change the machine.
func containerLogs(manage bool) string {
	if !manage {
		return ""
	}
	return "/var/log/containers"
}
