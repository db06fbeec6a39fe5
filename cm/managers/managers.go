package managers

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/kubeparts/kubeparts/cm/cpu"
	"github.com/kubeparts/kubeparts/cm/device"
	"github.com/kubeparts/kubeparts/cm/memory"
	"github.com/kubeparts/kubeparts/cm/topology"
	"github.com/kubeparts/kubeparts/internal/podspec"
	"github.com/kubeparts/kubeparts/runtime"
)

// annotationDevices is the annotation of a container with its devices: IDs by resource,
// as JSON. It is read if the checkpoint of devices is lost.
const annotationDevices = "kubeparts.io/devices"

// Config configures [Managers]. Each field except Topology may be nil.
type Config struct {
	Topology *topology.Manager // required; its providers are the others
	CPU      *cpu.Manager
	Memory   *memory.Manager
	Device   *device.Manager

	// Claims prepares resource claims: dra.Manager. Pod workers unprepare them
	// (agent.Subsystems.Claims). If nil, pods with claims are rejected.
	Claims Claims

	// Active reports whether a container of the pod may still run. Before Admit
	// allocates it releases the resources of all other pods (cpu-9, dev-12). If nil,
	// only Retain releases resources.
	Active func(uid types.UID) bool
}

// Claims prepares the resource claims of pods. dra.Manager implements it.
type Claims interface {
	// PrepareResources blocks until the claims of the pod are prepared. It has no effect for
	// a pod without claims.
	PrepareResources(ctx context.Context, pod *v1.Pod) error

	// CDIDevices returns the CDI devices of a container.
	CDIDevices(ctx context.Context, pod *v1.Pod, c *v1.Container) ([]string, error)
}

// Managers applies the allocations of pods to the configuration of their containers. It
// implements cri.Managers. Safe for concurrent use.
type Managers struct{ cfg Config }

// New returns Managers for cfg.
func New(cfg Config) (*Managers, error) {
	if cfg.Topology == nil {
		return nil, errors.New("managers: Config.Topology is nil")
	}
	return &Managers{cfg: cfg}, nil
}

// Providers returns the managers that are not nil, in the order in which the topology
// manager must call them (rule top-6).
func Providers(d *device.Manager, c *cpu.Manager, m *memory.Manager) []topology.Provider {
	var all []topology.Provider
	if d != nil {
		all = append(all, d)
	}
	if c != nil {
		all = append(all, c)
	}
	if m != nil {
		all = append(all, m)
	}
	return all
}

// Admit implements pipeline.Admitter: it gives the pod's containers the resources
// that they request. A pod that is admitted again keeps its resources.
func (m *Managers) Admit(ctx context.Context, pod *v1.Pod) *runtime.Rejection {
	if m.cfg.Claims == nil && claims(pod) {
		return &runtime.Rejection{Reason: topology.ReasonUnexpected, Message: errClaims.Error(), Err: errClaims}
	}
	if m.cfg.Active != nil {
		_ = m.Retain(ctx, m.cfg.Active) // returns nil
	}
	err := m.cfg.Topology.Admit(ctx, pod)
	if err == nil {
		return nil
	}
	if r, ok := errors.AsType[*runtime.Rejection](err); ok {
		return r
	}
	return &runtime.Rejection{Reason: topology.ReasonUnexpected, Message: err.Error(), Deferred: true, Err: err} // ctx is done
}

// Retain releases the resources of all pods for which keep returns false, except claims. It
// implements podworker.Retainer and returns nil.
func (m *Managers) Retain(_ context.Context, keep func(uid types.UID) bool) error {
	if m.cfg.Device != nil {
		m.cfg.Device.Retain(keep)
	}
	if m.cfg.CPU != nil {
		m.cfg.CPU.Retain(keep)
	}
	if m.cfg.Memory != nil {
		m.cfg.Memory.Retain(keep)
	}
	return nil
}

// errClaims is the reason to reject pods with resource claims if no manager prepares them.
var errClaims = errors.New("resource claims (dynamic resource allocation) are not supported")

func claims(pod *v1.Pod) bool {
	return len(pod.Spec.ResourceClaims) > 0 || pod.Status.ExtendedResourceClaimStatus != nil
}

// PreparePod implements cri.Managers: it prepares the resource claims of the pod.
func (m *Managers) PreparePod(ctx context.Context, pod *v1.Pod) error {
	if m.cfg.Claims != nil {
		return m.cfg.Claims.PrepareResources(ctx, pod)
	}
	if claims(pod) {
		return fmt.Errorf("managers: %w", errClaims)
	}
	return nil
}

// PreCreate implements cri.Managers: it sets the CPUs, NUMA nodes, device plugin options and
// CDI devices of the container. Variables, mounts and annotations of the pod have priority.
func (m *Managers) PreCreate(ctx context.Context, pod *v1.Pod, c *v1.Container, config *runtimeapi.ContainerConfig) error {
	resources := func() *runtimeapi.LinuxContainerResources {
		if config.Linux == nil {
			config.Linux = &runtimeapi.LinuxContainerConfig{}
		}
		if config.Linux.Resources == nil {
			config.Linux.Resources = &runtimeapi.LinuxContainerResources{}
		}
		return config.Linux.Resources
	}
	if m.cfg.CPU != nil {
		if cpus, _ := m.cfg.CPU.CPUs(pod.UID, c.Name); !cpus.IsEmpty() {
			resources().CpusetCpus = cpus.String()
		}
	}
	if m.cfg.Memory != nil {
		if nodes := m.cfg.Memory.Nodes(pod.UID, c.Name); nodes != 0 {
			resources().CpusetMems = nodes.String()
		}
	}
	if m.cfg.Claims != nil {
		names, err := m.cfg.Claims.CDIDevices(ctx, pod, c)
		if err != nil {
			return err
		}
		addCDI(config, names)
	}
	if m.cfg.Device == nil {
		return nil
	}
	if err := m.cfg.Device.Ensure(ctx, pod, c); err != nil {
		return err
	}
	wants, err := m.cfg.Device.Options(pod.UID, c.Name)
	if err != nil {
		return err
	}
	addDevices(config, wants)
	return m.noteDevices(pod, c, config)
}

// ExclusiveCPUs implements cri.Managers: it returns the names of the pod's
// containers that have CPUs which no other container may use.
func (m *Managers) ExclusiveCPUs(pod *v1.Pod) []string {
	if m.cfg.CPU == nil {
		return nil
	}
	var names []string
	for c := range podspec.Containers(pod) {
		if _, exclusive := m.cfg.CPU.CPUs(pod.UID, c.Name); exclusive {
			names = append(names, c.Name)
		}
	}
	return names
}

// NoQuota reports whether the cgroup of the pod has no CPU quota because of exclusive CPUs, on which its containers
// would be throttled: one container with some is enough. In a pod with pod-level resources, whose quota the
// others share, all containers must have some.
func (m *Managers) NoQuota(pod *v1.Pod) bool { return podspec.NoQuota(pod, m.ExclusiveCPUs(pod)) }

// addDevices adds the options of device plugins to the config.
func addDevices(config *runtimeapi.ContainerConfig, wants device.RunOptions) {
	has := map[string]bool{}
	for _, e := range config.Envs {
		has[e.Key] = true
	}
	for _, e := range wants.Env {
		if !has[e.Name] {
			config.Envs = append(config.Envs, &runtimeapi.KeyValue{Key: e.Name, Value: []byte(e.Value)})
		}
	}
	for _, a := range wants.Annotations {
		annotate(config, a.Name, a.Value)
	}
	mounted := map[string]bool{}
	for _, mount := range config.Mounts {
		mounted[mount.ContainerPath] = true
	}
	for _, mount := range wants.Mounts {
		if !mounted[mount.ContainerPath] {
			config.Mounts = append(config.Mounts, &runtimeapi.Mount{
				ContainerPath: mount.ContainerPath, HostPath: mount.HostPath, Readonly: mount.ReadOnly,
			})
		}
	}
	for _, d := range wants.Devices {
		config.Devices = append(config.Devices, &runtimeapi.Device{ContainerPath: d.ContainerPath, HostPath: d.HostPath, Permissions: d.Permissions})
	}
	addCDI(config, wants.CDI)
}

// addCDI adds CDI devices to the config, each once: a runtime injects what a device requires
// for each occurrence.
func addCDI(config *runtimeapi.ContainerConfig, names []string) {
	for _, name := range names {
		if !slices.ContainsFunc(config.CDIDevices, func(d *runtimeapi.CDIDevice) bool { return d.Name == name }) {
			config.CDIDevices = append(config.CDIDevices, &runtimeapi.CDIDevice{Name: name})
		}
	}
}

// noteDevices stores the devices of the container in an annotation.
func (m *Managers) noteDevices(pod *v1.Pod, c *v1.Container, config *runtimeapi.ContainerConfig) error {
	ids := map[string][]string{}
	for name, devices := range m.cfg.Device.Devices(pod.UID, c.Name) {
		for _, d := range devices {
			ids[name] = append(ids[name], d.ID)
		}
	}
	if len(ids) == 0 {
		return nil
	}
	text, err := json.Marshal(ids)
	if err == nil {
		annotate(config, annotationDevices, string(text))
	}
	return err
}

func annotate(config *runtimeapi.ContainerConfig, key, value string) {
	if config.Annotations == nil {
		config.Annotations = map[string]string{}
	}
	if _, has := config.Annotations[key]; !has {
		config.Annotations[key] = value
	}
}

// PreStart implements cri.Managers.
func (m *Managers) PreStart(ctx context.Context, pod *v1.Pod, c *v1.Container, _ string) error {
	if m.cfg.Device == nil {
		return nil
	}
	return m.cfg.Device.PreStart(ctx, pod, c)
}

// PostStop implements cri.Managers. It does nothing: a container keeps its resources for
// restarts until Retain releases them.
func (m *Managers) PostStop(context.Context, string) error { return nil }

// adoptedDevices returns the devices in a container's annotations; nil if there are none.
func adoptedDevices(uid types.UID, name string, annotations map[string]string) *device.Adopted {
	text := annotations[annotationDevices]
	if text == "" {
		return nil
	}
	a := device.Adopted{PodUID: uid, Container: name}
	if json.NewDecoder(strings.NewReader(text)).Decode(&a.Devices) != nil {
		return nil
	}
	return &a
}
