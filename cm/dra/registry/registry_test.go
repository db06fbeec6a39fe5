package registry_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	healthv1 "k8s.io/kubelet/pkg/apis/dra-health/v1"
	drav1 "k8s.io/kubelet/pkg/apis/dra/v1"

	"github.com/kubeparts/kubeparts/cm/dra"
	"github.com/kubeparts/kubeparts/cm/dra/dratest"
	"github.com/kubeparts/kubeparts/cm/dra/registry"
	"github.com/kubeparts/kubeparts/volume/csi/register"
)

const driverName = "test.example.com"

// deleted records the deletions of slices.
type deleted struct {
	mu      sync.Mutex
	drivers []string
	err     error
}

func (d *deleted) DeleteSlices(_ context.Context, driver string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.drivers = append(d.drivers, driver)
	return d.err
}

func (d *deleted) list() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return append([]string(nil), d.drivers...)
}

// A node has a registry whose plugins register at the sockets of a directory.
type node struct {
	*registry.Registry
	dir     string
	watcher *register.Watcher
}

func newNode(t *testing.T, cfg registry.Config) *node {
	t.Helper()
	dir, err := os.MkdirTemp("", "dra") // a socket's path is short
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	n := &node{dir: dir}
	n.Registry, err = registry.New(cfg)
	require.NoError(t, err)
	require.NoError(t, os.MkdirAll(n.registry(), 0o755))
	n.watcher, err = register.New(register.Config{Dir: n.registry(), Handlers: map[string]register.Handler{register.DRAPlugin: n.Registry}})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() { assert.NoError(t, n.Run(ctx)) })
	t.Cleanup(func() { cancel(); wg.Wait() })
	return n
}

func (n *node) registry() string { return filepath.Join(n.dir, "registry") }

func (n *node) scan(t *testing.T) {
	t.Helper()
	_, err := n.watcher.Scan(t.Context())
	require.NoError(t, err)
}

func (n *node) driver(t *testing.T, d *dratest.Driver) *dratest.Driver {
	t.Helper()
	d.Name, d.Dir, d.RegistryDir = driverName, n.dir, n.registry()
	require.NoError(t, d.Start())
	t.Cleanup(d.Stop)
	return d
}

var oneClaim = []dra.ClaimRef{{Namespace: "ns", Name: "gpu", UID: "uid-gpu"}}

// dra-10
func TestDriversRegisterAndAreCalled(t *testing.T) {
	for _, versions := range [][]string{{"v1.DRAPlugin"}, {"v1beta1.DRAPlugin"}} {
		t.Run(versions[0], func(t *testing.T) {
			calls := make(chan registry.CallInfo, 10)
			changed := make(chan string, 10)
			n := newNode(t, registry.Config{Called: func(i registry.CallInfo) { calls <- i }, Changed: func(d string) { changed <- d }})
			d := n.driver(t, &dratest.Driver{Versions: versions})
			require.False(t, n.Registered(driverName))
			_, err := n.Prepare(t.Context(), driverName, oneClaim)
			require.ErrorIs(t, err, dra.ErrNotRegistered)
			n.scan(t)
			require.True(t, d.Registrations()[0].PluginRegistered, d.Registrations()[0].Error)
			assert.Equal(t, driverName, <-changed)
			results, err := n.Prepare(t.Context(), driverName, oneClaim)
			require.NoError(t, err)
			assert.Equal(t, []dra.Device{{Pool: "pool", Name: "device-gpu", CDI: []string{driverName + "/claim=uid-gpu"}}}, results["uid-gpu"].Devices)
			assert.Equal(t, []string{"uid-gpu"}, d.Prepared())
			failed, err := n.Unprepare(t.Context(), driverName, oneClaim)
			require.NoError(t, err)
			assert.Contains(t, failed, oneClaim[0].UID)
			require.NoError(t, failed["uid-gpu"])
			assert.Empty(t, d.Prepared())
			call := <-calls
			assert.Equal(t, driverName+" /k8s.io.kubelet.pkg.apis.dra."+versions[0]+"/NodePrepareResources OK", call.Driver+" "+call.Method+" "+call.Code)
		})
	}
}

// dra-9, dra-10
func TestPluginsThatCannotRegister(t *testing.T) {
	n := newNode(t, registry.Config{})
	for want, register := range map[string]func() error{
		"invalid name":                   func() error { return n.Register(t.Context(), "../x", "/x.sock", []string{"v1.DRAPlugin"}) },
		"at most 63 characters":          func() error { return n.Register(t.Context(), longName(), "/x.sock", []string{"v1.DRAPlugin"}) },
		"not an absolute path":           func() error { return n.Register(t.Context(), driverName, "x.sock", []string{"v1.DRAPlugin"}) },
		"want v1.DRAPlugin or v1beta1.D": func() error { return n.Register(t.Context(), driverName, "/x.sock", []string{"v9.DRAPlugin"}) },
	} {
		require.ErrorContains(t, register(), want)
	}
	assert.False(t, n.Registered(driverName))
}

func longName() string {
	name := "a"
	for len(name) <= 63 {
		name += ".b"
	}
	return name
}

// dra-9
func TestFaultsOfDrivers(t *testing.T) {
	n := newNode(t, registry.Config{})
	d := n.driver(t, &dratest.Driver{})
	n.scan(t)
	for name, tt := range map[string]struct {
		fault      dratest.Fault
		call       string // the error of the call
		claim      string // the error of the claim
		missing    bool   // there is no result
		unprepares bool   // NodeUnprepareResources succeeds
	}{
		"hang":        {fault: dratest.Hang, call: "DeadlineExceeded"},
		"fail":        {fault: dratest.Fail, call: "Unknown: failed"},
		"fail after":  {fault: dratest.FailAfter, call: "Internal: failed after"},
		"fail claims": {fault: dratest.FailClaims, claim: "claim failed"},
		"omit":        {fault: dratest.OmitClaims, missing: true},
		"unknown":     {fault: dratest.UnknownClaim, call: `unknown claim UID "unknown"`},
		"CDI":         {fault: dratest.InvalidDevice, claim: `CDI device "../../etc=x"`, unprepares: true},
		"many":        {fault: dratest.TooManyDevices, claim: "10001 devices, the limit is 256", unprepares: true},
		"none":        {fault: dratest.NoFault, unprepares: true},
	} {
		t.Run(name, func(t *testing.T) {
			d.SetFault(tt.fault)
			short := func() context.Context {
				timeout := 90 * time.Second
				if tt.fault == dratest.Hang {
					timeout = 50 * time.Millisecond
				}
				ctx, cancel := context.WithTimeout(t.Context(), timeout)
				t.Cleanup(cancel)
				return ctx
			}
			results, err := n.Prepare(short(), driverName, oneClaim)
			failed, unErr := n.Unprepare(short(), driverName, oneClaim)
			if tt.call != "" {
				require.ErrorContains(t, err, tt.call)
				require.ErrorContains(t, unErr, tt.call)
				return
			}
			require.NoError(t, err)
			require.NoError(t, unErr)
			_, ok := results["uid-gpu"]
			assert.Equal(t, !tt.missing, ok)
			if tt.claim != "" {
				require.ErrorContains(t, results["uid-gpu"].Err, tt.claim)
			}
			got, ok := failed["uid-gpu"]
			assert.Equal(t, tt.unprepares, ok && got == nil)
		})
	}
}

// dra-10: the newest plugin of a driver is called, and the older one while it is the only
// one.
func TestAnUpgradeOfADriver(t *testing.T) {
	n := newNode(t, registry.Config{})
	started, release := make(chan struct{}), make(chan struct{})
	older := n.driver(t, &dratest.Driver{Instance: "-1", OnPrepare: func(context.Context, *drav1.Claim) ([]*drav1.Device, error) {
		close(started)
		<-release
		return nil, nil
	}})
	n.scan(t)
	var wg sync.WaitGroup
	wg.Go(func() {
		_, err := n.Prepare(t.Context(), driverName, oneClaim)
		assert.NoError(t, err, "a call in progress is completed")
	})
	<-started
	newer := n.driver(t, &dratest.Driver{Instance: "-2"})
	n.scan(t)
	close(release)
	wg.Wait()
	_, err := n.Unprepare(t.Context(), driverName, oneClaim)
	require.NoError(t, err)
	assert.Len(t, newer.Calls(), 1)
	assert.Len(t, older.Calls(), 1)

	newer.Stop()
	n.scan(t)
	require.True(t, n.Registered(driverName))
	_, err = n.Unprepare(t.Context(), driverName, oneClaim)
	require.NoError(t, err)
	assert.Len(t, older.Calls(), 2)
	older.Stop()
	n.scan(t)
	assert.False(t, n.Registered(driverName))
}

// dra-4
func TestSlicesOfDriversThatAreNotThereAreDeleted(t *testing.T) {
	slices := &deleted{}
	n := newNode(t, registry.Config{Slices: slices, Grace: 50 * time.Millisecond})
	require.Eventually(t, func() bool { return len(slices.list()) == 1 }, time.Minute, time.Millisecond)
	assert.Equal(t, []string{""}, slices.list(), "those of all drivers at the start")
	d := n.driver(t, &dratest.Driver{})
	n.scan(t)
	_, err := n.Prepare(t.Context(), driverName, oneClaim)
	require.NoError(t, err)
	time.Sleep(100 * time.Millisecond)
	assert.Len(t, slices.list(), 1)
	d.Stop() // and it does not deregister: the connection is lost
	require.Eventually(t, func() bool { return len(slices.list()) == 2 }, time.Minute, time.Millisecond)
	assert.Equal(t, driverName, slices.list()[1])
	require.True(t, n.Registered(driverName))
	require.NoError(t, d.Start())
	require.Eventually(t, func() bool {
		_, err := n.Prepare(t.Context(), driverName, oneClaim)
		return err == nil
	}, time.Minute, 10*time.Millisecond, "it connects again")
	d.Stop()
	n.scan(t)
	assert.False(t, n.Registered(driverName))
	require.Eventually(t, func() bool { return len(slices.list()) == 3 }, time.Minute, time.Millisecond)
}

// dra-4
func TestSlicesAreDeletedLaterIfTheAPIServerFails(t *testing.T) {
	slices := &deleted{err: errors.New("unavailable")}
	newNode(t, registry.Config{Slices: slices})
	require.Eventually(t, func() bool { return len(slices.list()) == 2 }, time.Minute, time.Millisecond)
}

// dra-12
func TestHealthOfDevicesIsReceived(t *testing.T) {
	for _, version := range []string{"v1.DRAResourceHealth", "v1alpha1.DRAResourceHealth"} {
		t.Run(version, func(t *testing.T) {
			changed := make(chan string, 100)
			n := newNode(t, registry.Config{HealthChanged: func(d string) { changed <- d }})
			d := n.driver(t, &dratest.Driver{Versions: []string{"v1.DRAPlugin", version}})
			report := func(h healthv1.HealthStatus, message string, timeout int64) {
				d.SetHealth(&healthv1.DeviceHealth{
					Device: &healthv1.DeviceIdentifier{PoolName: "pool", DeviceName: "dev"}, Health: h, Message: message, HealthCheckTimeoutSeconds: timeout,
				})
			}
			report(healthv1.HealthStatus_HEALTHY, "", 600)
			n.scan(t)
			assert.Equal(t, driverName, <-changed)
			status, _ := n.Health(driverName, "pool", "dev")
			assert.Equal(t, v1.ResourceHealthStatusHealthy, status)
			report(healthv1.HealthStatus_UNHEALTHY, "hot", 600)
			<-changed
			status, message := n.Health(driverName, "pool", "dev")
			assert.Equal(t, v1.ResourceHealthStatusUnhealthy, status)
			assert.Equal(t, "hot", message)
			report(healthv1.HealthStatus_UNHEALTHY, "hot", 1)
			<-changed // it has expired
			status, _ = n.Health(driverName, "pool", "dev")
			assert.Equal(t, v1.ResourceHealthStatusUnknown, status)
		})
	}
}

// A driver that reports a flapping device causes one notification per second.
func TestChangesOfHealthAreCoalesced(t *testing.T) {
	var calls atomic.Int32
	n := newNode(t, registry.Config{HealthChanged: func(string) { calls.Add(1) }})
	d := n.driver(t, &dratest.Driver{Versions: []string{"v1.DRAPlugin", "v1.DRAResourceHealth"}})
	report := func(i int) {
		d.SetHealth(&healthv1.DeviceHealth{
			Device: &healthv1.DeviceIdentifier{PoolName: "pool", DeviceName: "dev"}, Health: healthv1.HealthStatus_UNHEALTHY,
			Message: fmt.Sprint(i), HealthCheckTimeoutSeconds: 600,
		})
	}
	report(0)
	n.scan(t)
	begin := time.Now()
	for i := range 200 {
		report(i)
		require.Eventually(t, func() bool {
			_, message := n.Health(driverName, "pool", "dev")
			return message == fmt.Sprint(i)
		}, time.Minute, 100*time.Microsecond)
	}
	most := int32(time.Since(begin)/time.Second) + 2
	assert.LessOrEqual(t, calls.Load(), most)
	assert.NotZero(t, calls.Load())
}

func TestAStoppedRegistryRegistersNothing(t *testing.T) {
	r, err := registry.New(registry.Config{})
	require.NoError(t, err)
	require.NoError(t, r.Register(t.Context(), driverName, "/x.sock", []string{"v1.DRAPlugin"}), "before Run")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.NoError(t, r.Run(ctx))
	require.ErrorContains(t, r.Run(ctx), "was called before")
	require.ErrorContains(t, r.Register(t.Context(), driverName, "/x.sock", []string{"v1.DRAPlugin"}), "stopped")
	assert.False(t, r.Registered(driverName))
}

func TestAConfigIsChecked(t *testing.T) {
	_, err := registry.New(registry.Config{Grace: -1})
	assert.EqualError(t, err, "registry: Config.Grace is negative")
}
