package device_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
	pluginapi "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"

	"github.com/kubeparts/kubeparts/cm/device"
	"github.com/kubeparts/kubeparts/cm/device/devicetest"
	"github.com/kubeparts/kubeparts/cm/state"
	"github.com/kubeparts/kubeparts/cm/topology"
)

const widget = "example.com/widget"

// A desk is a running manager, for one test.
type desk struct {
	t   *testing.T
	dir string
	*device.Manager
	stop func()
}

// sockets returns a directory whose path is short enough for sockets.
func sockets(t *testing.T) string {
	dir, err := os.MkdirTemp("", "dp")
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

func newDesk(t *testing.T, cfg device.Config) *desk {
	t.Helper()
	if cfg.Dir == "" {
		cfg.Dir = sockets(t)
	}
	m, err := device.Open(cfg)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- m.Run(ctx) }()
	d := &desk{t: t, dir: cfg.Dir, Manager: m}
	stopped := false
	d.stop = func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		assert.NoError(t, <-done)
	}
	t.Cleanup(d.stop)
	d.until("kubelet.sock exists", func() bool {
		info, err := os.Stat(filepath.Join(cfg.Dir, device.Socket))
		return err == nil && info.Mode()&os.ModeSocket != 0
	})
	return d
}

func (d *desk) until(what string, is func() bool) {
	d.t.Helper()
	require.Eventually(d.t, is, 90*time.Second, 2*time.Millisecond, what)
}

// plugin starts a plugin with n devices, "0" …, and waits until they are listed.
func (d *desk) plugin(p *devicetest.Plugin, n int) *devicetest.Plugin {
	d.t.Helper()
	p.Dir = d.dir
	if p.Resource == "" {
		p.Resource = widget
	}
	var devices []*pluginapi.Device
	for i := range n {
		devices = append(devices, devicetest.Device(strconv.Itoa(i)))
	}
	p.Set(devices...)
	require.NoError(d.t, p.Start(d.t.Context()))
	d.t.Cleanup(p.Stop)
	d.has(p.Resource, n, n)
	return p
}

// has waits until the node has so many devices.
func (d *desk) has(name string, all, healthy int) {
	d.t.Helper()
	d.until(fmt.Sprintf("%s has %d devices, %d healthy", name, all, healthy), func() bool {
		capacity, allocatable, _ := d.Capacity()
		c, a := capacity[v1.ResourceName(name)], allocatable[v1.ResourceName(name)]
		_, there := capacity[v1.ResourceName(name)]
		return there && c.Value() == int64(all) && a.Value() == int64(healthy)
	})
}

// pod requests so many widgets for each container.
func pod(uid string, widgets ...int) *v1.Pod {
	p := &v1.Pod{}
	p.UID, p.Name = types.UID(uid), uid
	for i, n := range widgets {
		c := v1.Container{Name: fmt.Sprint("c", i)}
		c.Resources.Limits = v1.ResourceList{widget: *resource.NewQuantity(int64(n), resource.DecimalSI)}
		p.Spec.Containers = append(p.Spec.Containers, c)
	}
	return p
}

func (d *desk) allocate(p *v1.Pod) error {
	for i := range p.Spec.InitContainers {
		if err := d.Allocate(d.t.Context(), p, &p.Spec.InitContainers[i], topology.Any()); err != nil {
			return err
		}
	}
	for i := range p.Spec.Containers {
		if err := d.Allocate(d.t.Context(), p, &p.Spec.Containers[i], topology.Any()); err != nil {
			return err
		}
	}
	return nil
}

func (d *desk) ids(uid, container string) []string {
	var ids []string
	for _, dev := range d.Devices(types.UID(uid), container)[widget] {
		ids = append(ids, dev.ID)
	}
	return ids
}

// dev-2, dev-4, dev-6: a plugin registers, a container gets its devices, and the
// plugin's response is in the options the container is created with.
func TestAContainerGetsDevicesOfAPlugin(t *testing.T) {
	var registered []string
	d := newDesk(t, device.Config{Hooks: device.Hooks{Registered: func(name string) { registered = append(registered, name) }}})
	p := d.plugin(&devicetest.Plugin{}, 3)
	assert.True(t, d.Manages(widget))
	assert.False(t, d.Manages("example.com/other"))
	require.NoError(t, d.allocate(pod("a", 2)))
	assert.Equal(t, []string{"0", "1"}, d.ids("a", "c0"))
	options, err := d.Options("a", "c0")
	require.NoError(t, err)
	assert.Equal(t, []device.Pair{{Name: "DEVICES", Value: "[0 1]"}}, options.Env)
	require.NoError(t, d.allocate(pod("a", 2)), "it has them already")
	assert.Len(t, p.Allocated(), 1)
	require.EqualError(t, d.allocate(pod("a", 1)), `pod "a" container "c0" changed request for resource "example.com/widget" from 2 to 1`)
	require.EqualError(t, d.allocate(pod("b", 2)), "requested number of devices unavailable for example.com/widget. Requested: 2, Available: 1")
	d.Free("a")
	require.NoError(t, d.allocate(pod("b", 2)))
	assert.Equal(t, []string{widget}, registered) // dev-13
}

// dev-2
func TestARegistrationThatIsWrongIsRefused(t *testing.T) {
	d := newDesk(t, device.Config{})
	for name, tc := range map[string]struct {
		plugin *devicetest.Plugin
		want   string
	}{
		"version":  {&devicetest.Plugin{Version: "v1alpha"}, `requested API version "v1alpha" is not supported by kubelet. Supported version is ["v1beta1"]`},
		"native":   {&devicetest.Plugin{Resource: "cpu"}, `the ResourceName "cpu" is invalid`},
		"own":      {&devicetest.Plugin{Resource: "x.kubernetes.io/y"}, `the ResourceName "x.kubernetes.io/y" is invalid`},
		"requests": {&devicetest.Plugin{Resource: "requests.example.com/y"}, "is invalid"},
		"no name":  {&devicetest.Plugin{Resource: "example.com/"}, "is invalid"},
		"escape":   {&devicetest.Plugin{Endpoint: "../x.sock"}, "is not the name of a socket"},
		"self":     {&devicetest.Plugin{Endpoint: "kubelet.sock"}, "is not the name of a socket"},
	} {
		t.Run(name, func(t *testing.T) {
			p := tc.plugin
			p.Dir = d.dir
			if p.Resource == "" {
				p.Resource = widget
			}
			require.ErrorContains(t, p.Register(t.Context()), tc.want)
		})
	}
	capacity, _, _ := d.Capacity()
	assert.Empty(t, capacity)
}

// dev-1
func TestTheDirectoryIsEmptiedAtTheStart(t *testing.T) {
	dir := sockets(t)
	for _, name := range []string{"old.sock", "kubelet.sock", "note", device.StateFile + state.Backup} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), nil, 0o600))
	}
	require.NoError(t, os.Mkdir(filepath.Join(dir, "sub"), 0o700))
	d := newDesk(t, device.Config{Dir: dir})
	d.plugin(&devicetest.Plugin{}, 1)
	want := []string{"kubelet.sock", device.StateFile, device.StateFile + state.Backup, "sub", "widget.sock"}
	d.until("the state is written, and all else is gone", func() bool {
		entries, err := os.ReadDir(dir)
		require.NoError(t, err)
		var names []string
		for _, e := range entries {
			names = append(names, e.Name())
		}
		return slices.Equal(want, names)
	})
}

// The directory of a kubelet that runs was emptied before it was noticed.
func TestTheDirectoryOfAnotherKubeletIsNotEmptied(t *testing.T) {
	d := newDesk(t, device.Config{})
	d.plugin(&devicetest.Plugin{}, 1)
	other, err := device.Open(device.Config{Dir: d.dir})
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	require.ErrorContains(t, other.Run(ctx), "another kubelet listens at "+filepath.Join(d.dir, "kubelet.sock"))
	for _, name := range []string{"kubelet.sock", "widget.sock"} {
		assert.FileExists(t, filepath.Join(d.dir, name))
	}
}

// dev-4, dev-9: the health of devices.
func TestAnUnhealthyDeviceIsNotGivenOut(t *testing.T) {
	var changes []string
	changed := make(chan struct{}, 100)
	d := newDesk(t, device.Config{Changed: func(name string) { changes = append(changes, name); changed <- struct{}{} }})
	p := d.plugin(&devicetest.Plugin{}, 2)
	<-changed
	p.Set(devicetest.Ill("0"), devicetest.Device("1"))
	d.has(widget, 2, 1)
	<-changed
	well, ill := d.DeviceCounts()
	assert.Equal(t, []map[string]int{{widget: 1}, {widget: 1}}, []map[string]int{well, ill})
	require.NoError(t, d.allocate(pod("a", 1)))
	assert.Equal(t, []string{"1"}, d.ids("a", "c0"))
	health := func(is v1.ResourceHealthStatus) map[string][]v1.ResourceStatus { // dev-13
		return map[string][]v1.ResourceStatus{"c0": {{Name: widget, Resources: []v1.ResourceHealth{{ResourceID: "1", Health: is}}}}}
	}
	assert.Equal(t, health(v1.ResourceHealthStatusHealthy), d.Health("a"))
	assert.Nil(t, d.Health("b"))
	p.Set(devicetest.Ill("0"), devicetest.Ill("1"))
	d.has(widget, 2, 0)
	assert.Equal(t, health(v1.ResourceHealthStatusUnhealthy), d.Health("a"))
	p.Set(devicetest.Ill("0"))
	d.has(widget, 1, 0)
	assert.Equal(t, health(v1.ResourceHealthStatusUnknown), d.Health("a"))
	p.Set(devicetest.Ill("0"), devicetest.Ill("1"))
	d.has(widget, 2, 0)
	require.EqualError(t, d.allocate(pod("b", 1)), "no healthy devices present; cannot allocate unhealthy devices example.com/widget")
	p.Set(devicetest.Device("0"), devicetest.Ill("1"))
	d.has(widget, 2, 1)
	require.EqualError(t, d.allocate(pod("a", 1)), "previously allocated devices are no longer healthy; cannot allocate unhealthy devices example.com/widget")
}

// A pod waits for a plugin that has not registered yet; with RefuseLate it is admitted,
// and gets its devices when its container is created (dev-7).
func TestALatePluginIsWaitedFor(t *testing.T) {
	d := newDesk(t, device.Config{})
	require.EqualError(t, d.Wait(pod("a", 1)), "cannot allocate unregistered device example.com/widget")
	d.plugin(&devicetest.Plugin{}, 1)
	require.NoError(t, d.Wait(pod("a", 1)))
	assert.True(t, d.Concerns(pod("a", 1)))

	d = newDesk(t, device.Config{RefuseLate: true})
	a := pod("a", 1)
	require.NoError(t, d.Wait(a))
	assert.False(t, d.Concerns(a))
	require.NoError(t, d.allocate(a))
	d.plugin(&devicetest.Plugin{}, 1)
	require.NoError(t, d.Ensure(t.Context(), a, &a.Spec.Containers[0]))
	assert.Equal(t, []string{"0"}, d.ids("a", "c0"))

	d = newDesk(t, device.Config{Elsewhere: func(name string) bool { return name == widget }})
	require.NoError(t, d.Wait(a))
	assert.False(t, d.Concerns(a))
	d.plugin(&devicetest.Plugin{}, 1)
	assert.True(t, d.Concerns(a), "a plugin offers it now")

	d = newDesk(t, device.Config{}) // a claim provides it
	a.Status.ExtendedResourceClaimStatus = &v1.PodExtendedResourceClaimStatus{RequestMappings: []v1.ContainerExtendedResourceRequest{
		{ContainerName: a.Spec.Containers[0].Name, ResourceName: widget, RequestName: "r"},
	}}
	require.NoError(t, d.Wait(a))
	assert.False(t, d.Concerns(a))
	a.Status.ExtendedResourceClaimStatus.RequestMappings[0].ContainerName = "other"
	assert.True(t, d.Concerns(a))
}

// dev-6: devices of init containers are reused by later ones; sidecars keep theirs.
func TestDevicesOfInitContainersAreUsedAgain(t *testing.T) {
	d := newDesk(t, device.Config{})
	d.plugin(&devicetest.Plugin{}, 3)
	p := pod("a", 2)
	always := v1.ContainerRestartPolicyAlways
	p.Spec.InitContainers = []v1.Container{pod("", 1).Spec.Containers[0], pod("", 1).Spec.Containers[0]}
	p.Spec.InitContainers[0].Name, p.Spec.InitContainers[0].RestartPolicy = "sidecar", &always
	p.Spec.InitContainers[1].Name = "init"
	require.NoError(t, d.allocate(p))
	assert.Equal(t, []string{"0"}, d.ids("a", "sidecar"))
	assert.Equal(t, []string{"1"}, d.ids("a", "init"))
	assert.Equal(t, []string{"1", "2"}, d.ids("a", "c0"))
}

// activePods implements device.Pods; all pods ran.
type activePods map[types.UID]bool

func (activePods) Ran(types.UID) bool          { return true }
func (p activePods) Active(uid types.UID) bool { return p[uid] }

// dev-12
func TestDevicesOfInactivePodsAreGivenOut(t *testing.T) {
	active := map[types.UID]bool{"a": true}
	d := newDesk(t, device.Config{Pods: activePods(active)})
	d.plugin(&devicetest.Plugin{}, 1)
	require.NoError(t, d.allocate(pod("a", 1)))
	active["b"] = true
	require.Error(t, d.allocate(pod("b", 1)))
	active["a"] = false
	require.NoError(t, d.allocate(pod("b", 1)))
}

// dev-7
func TestPreStartIsCalledBeforeAStart(t *testing.T) {
	var prepared []string
	var fail error
	d := newDesk(t, device.Config{})
	d.plugin(&devicetest.Plugin{
		Options:    &pluginapi.DevicePluginOptions{PreStartRequired: true},
		OnPreStart: func(_ context.Context, ids []string) error { prepared = append(prepared, ids...); return fail },
	}, 1)
	a := pod("a", 1)
	require.NoError(t, d.allocate(a))
	require.NoError(t, d.PreStart(t.Context(), a, &a.Spec.Containers[0]))
	assert.Equal(t, []string{"0"}, prepared)
	fail = errors.New("it is hot")
	require.ErrorContains(t, d.PreStart(t.Context(), a, &a.Spec.Containers[0]), "device plugin PreStartContainer rpc failed with err: ")
}

// dev-6: two plugins set the same variable; the first counts.
func TestTheFirstOfTwoPluginsSetsAVariable(t *testing.T) {
	d := newDesk(t, device.Config{})
	for _, name := range []string{"b", "a"} {
		d.plugin(&devicetest.Plugin{Resource: "example.com/" + name, OnAllocate: func(context.Context, []string) (*pluginapi.AllocateResponse, error) {
			return &pluginapi.AllocateResponse{ContainerResponses: []*pluginapi.ContainerAllocateResponse{{
				Envs: map[string]string{"WHO": name, "HAS_" + name: "yes"}, Annotations: map[string]string{"who": name},
				Mounts:     []*pluginapi.Mount{{ContainerPath: "/w", HostPath: "/" + name}},
				Devices:    []*pluginapi.DeviceSpec{{ContainerPath: "/dev/w", HostPath: "/dev/" + name}},
				CdiDevices: []*pluginapi.CDIDevice{{Name: "x/y=z"}},
			}}}, nil
		}}, 1)
	}
	p := pod("p", 0)
	p.Spec.Containers[0].Resources.Limits = v1.ResourceList{"example.com/a": resource.MustParse("1"), "example.com/b": resource.MustParse("1")}
	require.NoError(t, d.allocate(p))
	got, err := d.Options("p", "c0")
	require.NoError(t, err)
	assert.Equal(t, []device.Pair{{Name: "HAS_a", Value: "yes"}, {Name: "WHO", Value: "a"}, {Name: "HAS_b", Value: "yes"}}, got.Env)
	assert.Equal(t, []device.Pair{{Name: "who", Value: "a"}}, got.Annotations)
	require.Len(t, got.Mounts, 1)
	assert.Equal(t, "/a", got.Mounts[0].HostPath)
	require.Len(t, got.Devices, 1)
	assert.Equal(t, "/dev/a", got.Devices[0].HostPath)
	assert.Equal(t, []string{"x/y=z"}, got.CDI)
}

// Misbehaving plugins: clear errors, and no device is allocated twice.
func TestAMisbehavingPluginIsContained(t *testing.T) {
	t.Run("it prefers devices that do not exist", func(t *testing.T) {
		d := newDesk(t, device.Config{})
		d.plugin(&devicetest.Plugin{
			Options:  &pluginapi.DevicePluginOptions{GetPreferredAllocationAvailable: true},
			OnPrefer: func([]string, []string, int) []string { return []string{"no", "2", "0", "2"} },
		}, 4)
		require.NoError(t, d.allocate(pod("a", 1)))
		assert.Equal(t, []string{"2"}, d.ids("a", "c0"))
		require.NoError(t, d.allocate(pod("b", 2)))
		assert.Equal(t, []string{"0", "1"}, d.ids("b", "c0"), "2 is given")
	})
	t.Run("it answers for no container", func(t *testing.T) {
		d := newDesk(t, device.Config{})
		d.plugin(&devicetest.Plugin{OnAllocate: func(context.Context, []string) (*pluginapi.AllocateResponse, error) {
			return &pluginapi.AllocateResponse{}, nil
		}}, 1)
		require.ErrorContains(t, d.allocate(pod("a", 1)), "no containers return in allocation response ")
		assert.Empty(t, d.ids("a", "c0"))
	})
	t.Run("it answers for many", func(t *testing.T) {
		d := newDesk(t, device.Config{})
		d.plugin(&devicetest.Plugin{OnAllocate: func(context.Context, []string) (*pluginapi.AllocateResponse, error) {
			return &pluginapi.AllocateResponse{ContainerResponses: make([]*pluginapi.ContainerAllocateResponse, 2)}, nil
		}}, 1)
		require.ErrorContains(t, d.allocate(pod("a", 1)), "2 containers")
	})
	t.Run("it never answers", func(t *testing.T) {
		d := newDesk(t, device.Config{Timing: device.Timing{CallTimeout: time.Second}}) // for others are to answer in it
		d.plugin(&devicetest.Plugin{OnAllocate: func(ctx context.Context, _ []string) (*pluginapi.AllocateResponse, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}}, 1)
		d.plugin(&devicetest.Plugin{Resource: "example.com/good"}, 1)
		require.EqualError(t, d.allocate(pod("a", 1)), "device plugin for example.com/widget: no response to Allocate within 1s")
		assert.Empty(t, d.ids("a", "c0"))
		good := pod("b", 0)
		good.Spec.Containers[0].Resources.Limits = v1.ResourceList{"example.com/good": resource.MustParse("1")}
		d.until("others are served", func() bool { return d.allocate(good) == nil })
	})
	t.Run("its list is huge", func(t *testing.T) {
		d := newDesk(t, device.Config{})
		p := d.plugin(&devicetest.Plugin{}, 1)
		p.Set(devicetest.Device(strings.Repeat("x", 17<<20)))
		d.has(widget, 1, 0) // as after a disconnection
	})
	t.Run("its list has doubles and devices without a name", func(t *testing.T) {
		d := newDesk(t, device.Config{})
		p := d.plugin(&devicetest.Plugin{}, 3)
		p.Set(devicetest.Device(""), devicetest.Device("x"), devicetest.Device("x", 99, -1))
		d.has(widget, 1, 1)
		require.NoError(t, d.allocate(pod("a", 1)))
		require.Error(t, d.allocate(pod("b", 1)))
	})
	t.Run("it serves after it has begun to register", func(t *testing.T) {
		d := newDesk(t, device.Config{})
		p := &devicetest.Plugin{Dir: d.dir, Resource: widget}
		registered := make(chan error, 1)
		go func() { registered <- p.Register(t.Context()) }()
		require.NoError(t, p.Serve())
		t.Cleanup(p.Stop)
		require.NoError(t, <-registered)
		d.until("it has sent its list", func() bool { return d.Wait(pod("a", 1)) == nil })
	})
	t.Run("it has no options", func(t *testing.T) {
		d := newDesk(t, device.Config{})
		before := d.plugin(&devicetest.Plugin{}, 1)
		p := &devicetest.Plugin{Dir: d.dir, Resource: widget, Endpoint: "other.sock", OptionsError: errors.New("out of order")}
		t.Cleanup(p.Stop)
		err := p.Start(t.Context())
		require.ErrorContains(t, err, "failed to get device plugin options")
		require.ErrorContains(t, err, "out of order")
		require.NoError(t, d.allocate(pod("a", 1)), "the earlier plugin is still in use")
		assert.Len(t, before.Allocated(), 1)
	})
}

// Devices are not allocated if the state can't be saved.
func TestDevicesThatCantBeSavedAreNotGiven(t *testing.T) {
	store := &failing{}
	d := newDesk(t, device.Config{Store: store})
	d.plugin(&devicetest.Plugin{}, 1)
	store.err = errors.New("the disk is full")
	require.ErrorContains(t, d.allocate(pod("a", 1)), "the disk is full")
	store.err = nil
	require.NoError(t, d.allocate(pod("b", 1)))
}

type failing struct {
	state.Memory
	err error
}

func (f *failing) Save(record []byte) error {
	if f.err != nil {
		return f.err
	}
	return f.Memory.Save(record)
}
