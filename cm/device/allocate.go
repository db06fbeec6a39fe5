package device

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	pluginapi "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"

	"github.com/kubeparts/kubeparts/cm/topology"
	"github.com/kubeparts/kubeparts/internal/podspec"
)

// Allocate implements topology.Provider (dev-6): it reserves devices and calls their plugins.
func (m *Manager) Allocate(ctx context.Context, pod *v1.Pod, c *v1.Container, where topology.Hint) error {
	if err := m.Reserve(ctx, pod, c, where); err != nil {
		return err
	}
	return m.complete(ctx, holder{pod.UID, c.Name})
}

// Reserve implements topology.Reserver: it selects devices, which then are not free. The plugins are
// not called, except for their preference.
func (m *Manager) Reserve(ctx context.Context, pod *v1.Pod, c *v1.Container, where topology.Hint) error {
	wants := m.requestedDevices(pod, c)
	if len(wants) == 0 {
		return nil
	}
	m.retire()
	done, err := m.serve(ctx)
	if err != nil {
		return err
	}
	defer done()
	for _, name := range slices.Sorted(maps.Keys(wants)) {
		if err := m.reserve(ctx, pod, c, name, wants[name], where); err != nil {
			m.dropPending(pod.UID)
			return err
		}
	}
	return nil
}

// Complete implements topology.Reserver: it calls the plugins of the reserved devices.
func (m *Manager) Complete(ctx context.Context, pod *v1.Pod) error {
	for c := range podspec.Containers(pod) {
		if err := m.complete(ctx, holder{pod.UID, c.Name}); err != nil {
			return err
		}
	}
	return nil
}

func (m *Manager) dropPending(uid types.UID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.ledger.dropPending(uid)
}

// reserve selects n devices of a resource for a container. The caller must hold the turn.
func (m *Manager) reserve(ctx context.Context, pod *v1.Pod, c *v1.Container, name string, n int, where topology.Hint) error {
	h := holder{pod.UID, c.Name}
	m.mu.Lock()
	p, has, err := m.checkLocked(pod, c, name, n)
	free, reusable := m.ledger.free(name), m.reusableLocked(pod, c, name)
	m.mu.Unlock()
	if err != nil || has {
		return err
	}
	if len(free)+len(reusable) < n {
		return fmt.Errorf("requested number of devices unavailable for %s. Requested: %d, Available: %d", name, n, len(free)+len(reusable))
	}
	ids := Choose(free, reusable, n, where, m.preference(ctx, p))
	g := grant{IDs: map[string]topology.Mask{}, pending: true}
	for _, id := range ids {
		g.IDs[id] = free[id].Nodes | reusable[id].Nodes
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.ledger.give(h, name, g)
	return nil
}

// preference returns the preference of a plugin; nil if it has none, or has recently not answered.
func (m *Manager) preference(ctx context.Context, p *plugin) Preference {
	m.mu.Lock()
	silent := time.Now().Before(p.preferAgain)
	m.mu.Unlock()
	if silent || !p.options.GetGetPreferredAllocationAvailable() {
		return nil
	}
	return func(available, must []string, size int) []string {
		calling, cancel := context.WithTimeout(ctx, min(m.cfg.Timing.CallTimeout, preferTimeout))
		defer cancel()
		ids, err := p.prefer(calling, available, must, size)
		if err != nil {
			m.cfg.Logger.Warn("Failed to get preferred allocation; allocating without a preference", "resource", p.resource, "err", err)
		}
		if ctx.Err() == nil && calling.Err() != nil {
			m.mu.Lock()
			defer m.mu.Unlock()
			p.preferAgain = time.Now().Add(preferPause)
		}
		return ids
	}
}

// complete calls the plugins of the devices that are reserved for a container. After an error nothing
// is reserved for the pod.
func (m *Manager) complete(ctx context.Context, h holder) error {
	m.mu.Lock()
	names := m.ledger.pending(h)
	m.mu.Unlock()
	for _, name := range names {
		if err := m.completeResource(ctx, h, name); err != nil {
			m.dropPending(h.uid)
			return err
		}
	}
	return nil
}

func (m *Manager) completeResource(ctx context.Context, h holder, name string) error {
	m.mu.Lock()
	var p *plugin
	if r := m.ledger.resources[name]; r != nil {
		p = r.plugin
	}
	ids := slices.Sorted(maps.Keys(m.ledger.grants[h][name].IDs))
	m.mu.Unlock()
	if p == nil {
		return fmt.Errorf("cannot allocate unregistered device %s", name)
	}
	done, err := p.serve(ctx)
	if err != nil {
		return err
	}
	answer, err := m.call(ctx, p, ids)
	done()
	if err != nil {
		return err
	}
	m.mu.Lock()
	g, reserved := m.ledger.grants[h][name]
	if reserved = reserved && g.pending; !reserved {
		m.mu.Unlock()
		return errReleased
	}
	g.Response, g.pending = answer, false
	m.ledger.give(h, name, g)
	version := m.touchLocked()
	m.mu.Unlock()
	return m.commit(version, func() { m.ledger.take(h, name) })
}

// errReleased is returned if the devices of a pod were released during a call of its plugin.
var errReleased = errors.New("device: the allocation was released because the pod is not active")

// checkLocked reports whether the devices are already allocated, and returns an error if
// they cannot be allocated or kept.
func (m *Manager) checkLocked(pod *v1.Pod, c *v1.Container, name string, n int) (p *plugin, has bool, err error) {
	m.settleLocked(name)
	g, has := m.ledger.grants[holder{pod.UID, c.Name}][name]
	if has && len(g.IDs) != n {
		return nil, has, fmt.Errorf("pod %q container %q changed request for resource %q from %d to %d", pod.UID, c.Name, name, len(g.IDs), n)
	}
	r := m.ledger.resources[name]
	switch {
	case r == nil || r.plugin == nil:
		return nil, has, fmt.Errorf("cannot allocate unregistered device %s", name)
	case r.healthy() == 0:
		return nil, has, fmt.Errorf("no healthy devices present; cannot allocate unhealthy devices %s", name)
	}
	if !m.healthyLocked(name, g) {
		return nil, has, fmt.Errorf("previously allocated devices are no longer healthy; cannot allocate unhealthy devices %s", name)
	}
	return r.plugin, has, nil
}

// settleLocked keeps or releases the allocations of pods that did not run at the start,
// once the plugin has reported its devices: a reboot may have renamed these.
func (m *Manager) settleLocked(name string) {
	if r := m.ledger.resources[name]; r == nil || r.plugin == nil || !r.listed {
		return
	}
	for h, granted := range m.ledger.grants {
		g, has := granted[name]
		switch {
		case !has || !g.idle:
		case m.healthyLocked(name, g):
			g.idle = false
			granted[name] = g
		default:
			m.ledger.take(h, name)
		}
	}
}

// healthyLocked reports whether all devices of an allocation are healthy.
func (m *Manager) healthyLocked(name string, g grant) bool {
	for id := range g.IDs {
		if !m.ledger.resources[name].devices[id].Healthy {
			return false
		}
	}
	return true
}

// call calls Allocate of the plugin and returns its marshaled response.
func (m *Manager) call(ctx context.Context, p *plugin, ids []string) ([]byte, error) {
	calling, cancel := context.WithTimeout(ctx, m.cfg.Timing.CallTimeout)
	defer cancel()
	begun := time.Now()
	answer, err := p.allocate(calling, ids)
	if ctx.Err() == nil && (err != nil && calling.Err() != nil || status.Code(err) == codes.DeadlineExceeded) {
		err = fmt.Errorf("device plugin for %s: no response to Allocate within %v", p.resource, m.cfg.Timing.CallTimeout)
	}
	if m.cfg.Hooks.Allocated != nil {
		m.cfg.Hooks.Allocated(AllocateInfo{Resource: p.resource, Devices: ids, Took: time.Since(begun), Error: err})
	}
	if err != nil {
		return nil, err
	}
	return proto.MarshalOptions{Deterministic: true}.Marshal(answer)
}

// PreStart must be called before each start of a container. It calls PreStartContainer of
// the plugins that require it, and returns an error if one of these is not connected.
// Plugins that registered only with an earlier agent are not called.
func (m *Manager) PreStart(ctx context.Context, pod *v1.Pod, c *v1.Container) error {
	m.mu.Lock()
	granted := maps.Clone(m.ledger.grants[holder{pod.UID, c.Name}])
	plugins := map[string]*plugin{}
	for name := range granted {
		if r := m.ledger.resources[name]; r != nil && r.prepares {
			plugins[name] = r.plugin
		}
	}
	m.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(plugins)) {
		if plugins[name] == nil {
			return fmt.Errorf("endpoint not found in cache for a registered resource: %s", name)
		}
		calling, cancel := context.WithTimeout(ctx, preStartTimeout)
		_, err := plugins[name].client.PreStartContainer(calling, &pluginapi.PreStartContainerRequest{
			DevicesIds: slices.Sorted(maps.Keys(granted[name].IDs)),
		})
		cancel()
		if err != nil {
			return fmt.Errorf("device plugin PreStartContainer rpc failed with err: %w", err)
		}
	}
	return nil
}

// Ensure allocates the missing devices of a container that is about to be created: its
// plugin registered after admission, or the plugin's response is not in the checkpoint.
// It does nothing if nothing is missing.
func (m *Manager) Ensure(ctx context.Context, pod *v1.Pod, c *v1.Container) error {
	wants := m.requestedDevices(pod, c)
	h := holder{pod.UID, c.Name}
	m.mu.Lock()
	lacks, silent := false, map[string]grant{}
	for name := range wants {
		g, has := m.ledger.grants[h][name]
		lacks = lacks || !has
		if has && g.Response == nil {
			silent[name] = g
		}
	}
	m.mu.Unlock()
	if lacks {
		if err := m.Allocate(ctx, pod, c, topology.Any()); err != nil {
			return err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(silent)) {
		if err := m.again(ctx, h, name); err != nil {
			return err
		}
	}
	return nil
}

// again calls Allocate for devices that the container already has.
func (m *Manager) again(ctx context.Context, h holder, name string) error {
	m.mu.Lock()
	g := m.ledger.grants[h][name]
	var p *plugin
	if r := m.ledger.resources[name]; r != nil {
		p = r.plugin
	}
	m.mu.Unlock()
	if p == nil {
		return fmt.Errorf("cannot allocate unregistered device %s", name)
	}
	done, err := p.serve(ctx)
	if err != nil {
		return err
	}
	defer done()
	answer, err := m.call(ctx, p, slices.Sorted(maps.Keys(g.IDs)))
	if err != nil {
		return err
	}
	if answer == nil {
		answer = []byte{}
	}
	m.mu.Lock()
	_, still := m.ledger.grants[h][name]
	if still {
		g.Response = answer
		m.ledger.give(h, name, g)
		m.touchLocked()
	}
	m.mu.Unlock()
	if !still {
		return errReleased
	}
	m.save()
	return nil
}

// RunOptions are the container options that the plugins require, in order.
type RunOptions struct {
	Env         []Pair
	Annotations []Pair
	Mounts      []*pluginapi.Mount
	Devices     []*pluginapi.DeviceSpec
	CDI         []string
}

// A Pair is a name and a value.
type Pair struct{ Name, Value string }

// Options returns the container options that plugins require. If two plugins set the same
// name to different values, that of the first resource by name is used and the conflict
// is logged.
func (m *Manager) Options(uid types.UID, container string) (RunOptions, error) {
	m.mu.Lock()
	granted := maps.Clone(m.ledger.grants[holder{uid, container}])
	m.mu.Unlock()
	out := RunOptions{}
	seen := map[string]bool{}
	first := func(kind, name, resource string) bool {
		key := kind + " " + name
		if seen[key] {
			m.cfg.Logger.Warn("Ignored container option that another device plugin has set", "podUID", uid, "containerName", container, "option", kind, "name", name, "resource", resource)
			return false
		}
		seen[key] = true
		return true
	}
	for _, name := range slices.Sorted(maps.Keys(granted)) {
		answer := &pluginapi.ContainerAllocateResponse{}
		if err := proto.Unmarshal(granted[name].Response, answer); err != nil {
			return RunOptions{}, fmt.Errorf("device: stored response of the plugin for %s: %w", name, err)
		}
		for _, key := range slices.Sorted(maps.Keys(answer.Envs)) {
			if first("env", key, name) {
				out.Env = append(out.Env, Pair{key, answer.Envs[key]})
			}
		}
		for _, key := range slices.Sorted(maps.Keys(answer.Annotations)) {
			if first("annotation", key, name) {
				out.Annotations = append(out.Annotations, Pair{key, answer.Annotations[key]})
			}
		}
		for _, mount := range answer.Mounts {
			if first("mount", mount.GetContainerPath(), name) {
				out.Mounts = append(out.Mounts, mount)
			}
		}
		for _, d := range answer.Devices {
			if first("device", d.GetContainerPath(), name) {
				out.Devices = append(out.Devices, d)
			}
		}
		for _, d := range answer.CdiDevices {
			if first("CDI", d.GetName(), name) {
				out.CDI = append(out.CDI, d.GetName())
			}
		}
	}
	return out, nil
}
