package registry

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/kubeparts/kubeparts/cm/dra"
	"github.com/kubeparts/kubeparts/internal/runonce"
	"github.com/kubeparts/kubeparts/logs"
)

// Slices deletes ResourceSlices.
type Slices interface {
	// DeleteSlices deletes the ResourceSlices of a driver on the node, or those of all
	// drivers on the node if driver is empty. It is not an error if there are none.
	DeleteSlices(ctx context.Context, driver string) error
}

// Config configures a [Registry].
type Config struct {
	// Slices deletes the ResourceSlices of drivers that are no longer there, so that no
	// pods that need them are scheduled. If nil, they are not deleted.
	Slices Slices

	// Grace is the time that a driver has to connect again before its slices are deleted.
	// Zero means 30 seconds.
	Grace time.Duration

	// Changed is called after a driver has been registered: pods may wait for it. It must
	// not block. May be nil.
	Changed func(driver string)

	// HealthChanged is called when the health of a device of the driver has changed, at most
	// once per second for a driver. It must not block. May be nil.
	HealthChanged func(driver string)

	// Called is called after each call of a driver, for metrics. It must not block. May be
	// nil.
	Called func(CallInfo)

	// Logger. If nil, messages are discarded.
	Logger *slog.Logger
}

// A CallInfo is the result of a call of a driver.
type CallInfo struct {
	Driver   string
	Method   string // full name: "/k8s.io.kubelet.pkg.apis.dra.v1.DRAPlugin/NodePrepareResources"
	Code     string // of gRPC: "OK"
	Duration time.Duration
}

// A Registry has the plugins of DRA drivers that have registered, and calls them. It
// implements [dra.Plugins], and register.Handler of volume/csi/register for plugins of the type
// DRAPlugin. If several plugins register for one driver, the last one is called. Safe for
// concurrent use.
type Registry struct {
	cfg   Config
	ran   runonce.Guard
	wake  chan struct{} // of capacity 1: Run must look at the schedule
	tasks sync.WaitGroup

	healthChanges pacer

	// mu guards the fields below.
	mu       sync.Mutex
	start    func(*connection) // starts the goroutines of a connection; nil unless Run runs
	ended    bool
	drivers  map[string]*connection
	health   map[string]healthCache
	cleanups cleanups
}

// New returns a Registry without plugins. It starts nothing.
func New(cfg Config) (*Registry, error) {
	if cfg.Grace < 0 {
		return nil, errors.New("registry: Config.Grace is negative")
	}
	if cfg.Grace == 0 {
		cfg.Grace = 30 * time.Second
	}
	if cfg.Changed == nil {
		cfg.Changed = func(string) {}
	}
	if cfg.HealthChanged == nil {
		cfg.HealthChanged = func(string) {}
	}
	if cfg.Called == nil {
		cfg.Called = func(CallInfo) {}
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	return &Registry{
		cfg: cfg, wake: make(chan struct{}, 1), drivers: map[string]*connection{}, health: map[string]healthCache{}, cleanups: cleanups{},
		healthChanges: pacer{notify: cfg.HealthChanged},
	}, nil
}

// maxDriverName is the maximum length of the name of a driver.
const maxDriverName = 63

// Register registers a plugin that serves at the endpoint, the path of a socket, with the
// newest of its versions that is supported: v1.DRAPlugin or v1beta1.DRAPlugin. It replaces
// the driver's plugin that registered before, whose calls in progress are completed.
func (r *Registry) Register(_ context.Context, driver, endpoint string, versions []string) error {
	c, err := checkedConnection(driver, endpoint, versions)
	if err != nil {
		return fmt.Errorf("registry: driver %q: %w", logs.Text(driver, maxShown), err)
	}
	r.mu.Lock()
	if r.ended {
		r.mu.Unlock()
		_ = c.conn.Close() // it has not connected
		return errors.New("registry: the registry was stopped")
	}
	before := r.drivers[driver]
	r.drivers[driver] = c
	r.cleanups.cancel(driver)
	if r.start != nil {
		r.start(c)
	}
	r.mu.Unlock()
	r.replace(before)
	r.cfg.Changed(driver)
	return nil
}

func checkedConnection(driver, endpoint string, versions []string) (*connection, error) {
	if errs := validation.IsDNS1123Subdomain(driver); len(errs) > 0 || len(driver) > maxDriverName {
		return nil, fmt.Errorf("invalid name: want a DNS subdomain of at most %d characters", maxDriverName)
	}
	if !filepath.IsAbs(endpoint) {
		return nil, fmt.Errorf("endpoint %q is not an absolute path", logs.Text(endpoint, maxShown))
	}
	s, err := chooseServices(versions)
	if err != nil {
		return nil, err
	}
	return newConnection(driver, endpoint, s)
}

// Deregister removes the plugin of a driver. The ResourceSlices of the driver are deleted
// unless a plugin registers within the grace period.
func (r *Registry) Deregister(_ context.Context, driver string) {
	r.mu.Lock()
	c := r.drivers[driver]
	delete(r.drivers, driver)
	if c != nil {
		r.cleanups.schedule(driver, time.Now().Add(r.cfg.Grace))
	}
	r.mu.Unlock()
	r.replace(c)
	r.hasten()
}

// replace closes a connection after its calls. c may be nil.
func (r *Registry) replace(c *connection) {
	if c == nil {
		return
	}
	r.mu.Lock()
	c.replaced = true
	idle := c.calls == 0
	r.mu.Unlock()
	if c.stop != nil {
		c.stop()
	}
	if idle {
		_ = c.conn.Close() // its error has no consequence
	}
}

// Registered implements [dra.Plugins].
func (r *Registry) Registered(driver string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.drivers[driver] != nil
}

// Health returns the health of a device; Unknown if its driver has not reported it in time.
func (r *Registry) Health(driver, pool, device string) (status v1.ResourceHealthStatus, message string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.health[driver].get(pool, device)
}

// Prepare implements [dra.Plugins].
func (r *Registry) Prepare(ctx context.Context, driver string, claims []dra.ClaimRef) (results map[types.UID]dra.Prepared, err error) {
	err = r.call(driver, "NodePrepareResources", func(c *connection) (err error) {
		results, err = c.prepare(ctx, claims)
		return err
	})
	return results, err
}

// Unprepare implements [dra.Plugins].
func (r *Registry) Unprepare(ctx context.Context, driver string, claims []dra.ClaimRef) (results map[types.UID]error, err error) {
	err = r.call(driver, "NodeUnprepareResources", func(c *connection) (err error) {
		results, err = c.unprepare(ctx, claims)
		return err
	})
	return results, err
}

// call calls f with the connection of a driver.
func (r *Registry) call(driver, method string, f func(*connection) error) error {
	r.mu.Lock()
	c := r.drivers[driver]
	if c == nil {
		r.mu.Unlock()
		return fmt.Errorf("DRA driver %s is %w", driver, dra.ErrNotRegistered)
	}
	c.calls++
	r.mu.Unlock()
	began := time.Now()
	err := f(c)
	r.mu.Lock()
	c.calls--
	last := c.replaced && c.calls == 0
	r.mu.Unlock()
	if last {
		_ = c.conn.Close()
	}
	s, fromDriver := status.FromError(err)
	code := codes.OK // of a response that is invalid
	if fromDriver {
		code = s.Code()
	}
	r.cfg.Called(CallInfo{Driver: driver, Method: c.fullMethod(method), Code: code.String(), Duration: time.Since(began)})
	if code != codes.OK {
		return fmt.Errorf("%v: %s", code, shortened(s.Message()))
	}
	return err
}
